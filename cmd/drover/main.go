// Command drover drives a herd of cloud VMs: it brings them in when there is work and sends them away when there is none.
package main

import (
	"context"
	"os"
)

func main() {
	if code, is := runRole(os.Args, os.Stdin, os.Stdout, os.Stderr); is {
		os.Exit(code)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
