package config

// misnomers maps other systems' names to the key and value to write here. A hint is given only where that key exists.
var misnomers = map[string]struct{ key, write string }{
	"retries":      {"retry", "write retry: 3 for up to three retries after any exit code, the first after 10s, with the delay doubling each time; or retry: {times: 3, delay: 1m, exit_codes: [75]}"},
	"depends_on":   {"after", "write after: [JOB]"},
	"dependencies": {"after", "write after: [JOB]"},
	"needs":        {"after", "write after: [JOB]"},
	"script":       {"command", `write command: ["sh", "-c", "…"]`},
	"cmd":          {"command", `write command: ["PROGRAM", "ARGUMENT"]`},
	"args":         {"command", `write command: ["PROGRAM", "ARGUMENT"]`},
	"environment":  {"env", "write env: {NAME: VALUE}"},
	"walltime":     {"timeout", "write timeout: 1h"},
	"time":         {"timeout", "write timeout: 1h"},
	"mem":          {"memory", "write memory: 4Gi"},
}
