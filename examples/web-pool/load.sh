#!/bin/sh
# load.sh [SECONDS] [URL] requests the page repeatedly and retries each failed request once, immediately. It prints the
# numbers of requests, retries and failed retries, and fails if any retry failed.
end=$(($(date +%s) + ${1:-60}))
url=${2:-http://127.0.0.1:8480/}
trap 'end=0' INT TERM
asked=0 again=0 failed=0
while [ "$(date +%s)" -lt "$end" ]; do
	asked=$((asked + 1))
	curl -fsS --max-time 5 -o /dev/null "$url" && continue
	again=$((again + 1))
	curl -fsS --max-time 5 -o /dev/null "$url" || failed=$((failed + 1))
done
echo "$asked requests, $again retries, $failed failed"
[ "$failed" = 0 ]
