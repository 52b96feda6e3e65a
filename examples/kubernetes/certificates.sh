#!/bin/sh
# Usage: certificates.sh ADDRESS
# Creates a certificate authority and two certificates for mutual TLS in this folder: one for the controller, valid for
# ADDRESS (the name or IP address at which the cluster reaches it), and one for the autoscaler. They expire after a year.
set -eu
cd "$(dirname "$0")"
address=${1:?usage: certificates.sh ADDRESS}
case $address in
*[!0-9.]*) name=DNS:$address ;;
*) name=IP:$address ;;
esac
umask 077

[ -e ca.key ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=drover-authority -keyout ca.key -out ca.crt

# issue NAME EXTENSIONS creates a key and its certificate.
issue() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
	echo "$2" >"$1.ext"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile "$1.ext" -out "$1.crt"
	rm "$1.csr" "$1.ext"
}
issue server "subjectAltName = $name
extendedKeyUsage = serverAuth"
issue autoscaler "extendedKeyUsage = clientAuth"
