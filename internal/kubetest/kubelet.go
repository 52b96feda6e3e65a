package kubetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"drover"
)

// KwokAnnotation marks nodes that kwok simulates.
const KwokAnnotation = "kwok.x-k8s.io/node"

// joinWithin limits how long a kubelet tries to register: its token's secret may be created after its instance, and its
// rights later still.
const joinWithin = time.Minute

// Kubelet registers its instance's node, as a kubelet with a bootstrap token does, and reports that it is ready. With
// -kwok it leaves that report to kwok. It runs until it is killed.
func Kubelet(args []string) error {
	flags := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	server, ca, token := flags.String("server", "", ""), flags.String("ca", "", ""), flags.String("token", "", "")
	name, id := flags.String("name", "", ""), flags.String("provider-id", "", "")
	labels, taints := flags.String("labels", "", ""), flags.String("taints", "", "")
	cpu, gpus, kwok := flags.String("cpu", "", ""), flags.String("gpus", "", ""), flags.Bool("kwok", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	api := &API{URL: *server, Token: *token, HTTP: http.DefaultClient}
	if *ca != "" {
		pem, err := os.ReadFile(*ca)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s contains no certificate", *ca)
		}
		api.HTTP = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	}
	n := Node{APIVersion: "v1", Kind: "Node", Meta: Meta{Name: *name, Labels: map[string]string{"kubernetes.io/hostname": *name, "kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH}}}
	for pair := range strings.SplitSeq(*labels, ",") {
		key, value, _ := strings.Cut(pair, "=")
		n.Meta.Labels[key] = value
	}
	for text := range strings.SplitSeq(*taints, ",") {
		n.Spec.Taints = append(n.Spec.Taints, Taint(drover.ParseTaint(text)))
	}
	n.Spec.ProviderID = *id
	has := map[string]string{"cpu": *cpu, "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
	if *gpus != "" && *gpus != "0" {
		has["nvidia.com/gpu"] = *gpus
	}
	n.Status = NodeStatus{Capacity: has, Allocatable: has}
	if *kwok {
		n.Meta.Annotations = map[string]string{KwokAnnotation: "fake"}
	}
	if err := register(api, n); err != nil {
		return err
	}
	if !*kwok {
		ready := map[string]any{"status": map[string]any{"conditions": []Condition{{Type: "Ready", Status: "True"}}}}
		if err := api.Do(context.Background(), "PATCH", "/api/v1/nodes/"+*name+"/status", ready, nil); err != nil {
			return err
		}
	}
	select {}
}

// register creates the Node object as soon as the token is valid.
func register(api *API, n Node) error {
	var err error
	for end := time.Now().Add(joinWithin); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		err = api.Do(context.Background(), "POST", "/api/v1/nodes", n, nil)
		if err == nil || IsStatus(err, http.StatusConflict) {
			return nil
		}
	}
	return errors.Join(errors.New("the node could not register"), err)
}
