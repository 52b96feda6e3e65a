#!/bin/sh
# load.sh [SECONDS] [URL] asks for the page, again and again, and once more at once if that fails. It says how often it had to, and fails if both did.
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
echo "$asked requests, $again asked again, $failed failed"
[ "$failed" = 0 ]
