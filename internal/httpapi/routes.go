package httpapi

import (
	"net/http"

	"drover"
)

// route is one line of the API: a method and a path, and who may use them.
type route struct {
	method, path string
	role         drover.Role // that a token needs; empty: not even a token is needed
	attempt      bool        // an attempt's token is enough, for its own job if the path names one
	long         bool        // its answer or its body has no time limit; counted as a stream
	about        string
	bind         binding
}

// The memory that a batch takes while it is read, measured with the worst batches: for each byte of JSON, such as a
// list of digits; for each byte of YAML, which may have fewer bytes; and at most, which is config's limit for a batch.
const (
	memoryPerByte     = 64
	memoryPerYAMLByte = 512
	mostYAML          = 256 << 10
	memoryAtMost      = 128 << 20
)

// body returns how much memory reading a request's body may take; 0 if that is little.
func (rt route) body(r *http.Request) int64 {
	switch {
	case rt.path != "/v1/batches" && rt.path != "/v1/jobs/{id}/retry" && rt.path != "/v1/config/diff":
		return 0
	case r.ContentLength < 0:
		return memoryAtMost
	}
	if r.ContentLength <= mostYAML {
		return memoryPerYAMLByte * r.ContentLength
	}
	return min(memoryPerByte*min(r.ContentLength, maxBatch), memoryAtMost)
}

// routes returns the API. In addition, only RoleOperate may change other users' jobs, see Handler.mayChange, or read
// their output, see Handler.mayRead.
func routes() []route {
	const (
		nobody  drover.Role = ""
		view                = drover.RoleView
		submit              = drover.RoleSubmit
		operate             = drover.RoleOperate
		admin               = drover.RoleAdmin
	)
	return []route{
		// method, path, role, attempt, long
		{"POST", "/v1/batches", submit, false, false, "submit a batch, in the form of a batch file", bind((*Handler).submit)},
		{"GET", "/v1/jobs", view, false, false, "list jobs, sorted by id", bind((*Handler).listJobs)},
		{"GET", "/v1/jobs/{id}", view, true, false, "show a job, an entire array, or an element", bind((*Handler).showJob)},
		{"POST", "/v1/jobs/prune", operate, false, false, "delete the logs and outputs of jobs that ended before a time", bind((*Handler).prune)},
		{"PATCH", "/v1/jobs/{id}", submit, false, false, "change a job's priority", bind((*Handler).prioritize)},
		{"POST", "/v1/jobs/{id}/cancel", submit, false, false, "cancel a job, an array or an element", bind((*Handler).cancel)},
		{"POST", "/v1/jobs/{id}/retry", submit, false, false, "requeue failed or cancelled elements of a final job, optionally with new definitions from a batch", bind((*Handler).retry)},
		{"GET", "/v1/jobs/{id}/explain", view, true, false, "explain why a job is in its state", bind((*Handler).explainJob)},
		{"GET", "/v1/jobs/{id}/logs", view, true, true, "read, or follow, an output stream of a job", bind((*Handler).logs)},
		{"GET", "/v1/jobs/{id}/outputs", view, true, false, "list a job's output files", bind((*Handler).outputs)},
		{"GET", "/v1/jobs/{id}/outputs/content", view, true, true, "read an output file", bind((*Handler).output)},

		{"POST", "/v1/inputs/missing", submit, false, false, "list which of the given files the caller has not uploaded yet", bind((*Handler).missingInputs)},
		{"PUT", "/v1/inputs/{hash}", submit, false, true, "store a file under its SHA-256", bind((*Handler).putInput)},

		{"POST", "/v1/queue/pause", operate, false, false, "stop starting queued jobs and renting instances for them", setPaused(true)},
		{"POST", "/v1/queue/resume", operate, false, false, "start queued jobs again", setPaused(false)},

		{"GET", "/v1/instances", view, false, false, "list instances, sorted by id", bind((*Handler).listInstances)},
		{"GET", "/v1/instances/{id}", view, false, false, "show an instance, by its id, its name or the id that its cloud uses", bind((*Handler).showInstance)},
		{"POST", "/v1/instances/{id}/drain", operate, false, false, "let an instance finish its running jobs, then destroy it", instruct(drover.VerbDrain)},
		{"POST", "/v1/instances/{id}/hold", operate, false, false, "keep an instance, and start nothing on it", instruct(drover.VerbHold)},
		{"POST", "/v1/instances/{id}/release", operate, false, false, "let an instance take work again", instruct(drover.VerbRelease)},
		{"POST", "/v1/instances/{id}/kill", operate, false, false, "destroy an instance now, even if jobs are running on it", instruct(drover.VerbKill)},
		{"GET", "/v1/pools", view, false, false, "list the pools, with their wanted and existing instances", bind((*Handler).pools)},
		{"PUT", "/v1/pools/{name}/size", operate, false, false, "change a pool's number of instances", bind((*Handler).resizePool)},
		{"GET", "/v1/offers", view, false, false, "list the offerings that can be rented, cheapest first", bind((*Handler).offers)},

		{"GET", "/v1/cost", view, false, false, "list costs, most expensive first", bind((*Handler).costs)},

		{"GET", "/v1/summary", view, false, false, "show what the fleet has done and what it has cost since its creation", bind((*Handler).summary)},

		{"GET", "/v1/explain", view, false, false, "explain the state of one subject, or of everything that is waiting", bind((*Handler).explain)},
		{"GET", "/v1/status", view, true, false, "show the fleet at a glance", bind((*Handler).status)},
		{"GET", "/v1/events", view, false, true, "follow events, as a stream of server-sent events", bind((*Handler).events)},
		{"POST", "/v1/config/diff", admin, false, false, "show what another version of the configuration file would change, without changing anything", bind((*Handler).compareConfig)},
		{"GET", "/v1/dump", admin, false, true, "show everything the controller knows, without secrets", bind((*Handler).dump)},

		{"GET", "/v1/tokens", admin, false, false, "list tokens, without their secrets", bind((*Handler).listTokens)},
		{"POST", "/v1/tokens", admin, false, false, "create a token, whose secret is shown only once", bind((*Handler).createToken)},
		{"DELETE", "/v1/tokens/{id}", admin, false, false, "revoke a token", bind((*Handler).revokeToken)},

		{"POST", "/v1/login", view, false, false, "create a short-lived, single-use link that logs a browser in with the caller's token", bind((*Handler).login)},

		{"GET", "/openapi.json", view, false, false, "describe this API", bind((*Handler).openAPI)},
		{"GET", "/metrics", view, false, false, "show the metrics of the fleet", bindMetrics},
		{"GET", "/livez", nobody, true, false, "report that the controller is alive", bind((*Handler).live)},
		{"GET", "/readyz", nobody, true, false, "report whether the controller is ready", bind((*Handler).ready)},
	}
}
