// Command drover-runner is the small program that Drover deploys to every instance. See package runner.
package main

import (
	"os"

	"drover/internal/runner"
)

func main() { os.Exit(runner.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
