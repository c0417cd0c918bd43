// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

const nodeName = "node-1"

// kwokUser is the user that KWOK is to the API server. The other parts are the admin.
const kwokUser = "kwok"

// startWorkloads starts the parts that create pods for Deployments and StatefulSets and
// assign them a node.
func (c *ControlPlane) startWorkloads(ctx context.Context) error {
	if !c.options.Workloads {
		return nil
	}
	if err := c.refuseLateRemovals(ctx); err != nil {
		return err
	}
	if err := inParallel(
		func() error { return c.startControllerManager(ctx) },
		func() error { return c.startScheduler(ctx) },
		func() error { return c.startKWOK(ctx) },
	); err != nil {
		return err
	}
	return c.awaitReplica(ctx)
}

// trusting calls parts on loopback, which sign their certificates themselves.
var trusting = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it asks for health and sends no secrets
}}

func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	port, err := c.ports.take()
	if err != nil {
		return err
	}
	p := c.process(parts.ControllerManager,
		"--kubeconfig="+c.kubeconfig,
		"--bind-address="+loopback,
		"--secure-port="+strconv.Itoa(port),
		"--cert-dir="+c.dir.file("kube-controller-manager"),
		"--service-account-private-key-file="+c.dir.file("service-account.key"),
		"--root-ca-file="+c.dir.file("ca.crt"),
		"--use-service-account-credentials=false",
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	p.ready = answersOK(trusting, "https://"+address(port)+"/healthz")
	return p.Start(ctx)
}

func (c *ControlPlane) startScheduler(ctx context.Context) error {
	port, err := c.ports.take()
	if err != nil {
		return err
	}
	p := c.process(parts.Scheduler,
		"--kubeconfig="+c.kubeconfig,
		"--bind-address="+loopback,
		"--secure-port="+strconv.Itoa(port),
		"--cert-dir="+c.dir.file("kube-scheduler"),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	p.ready = answersOK(trusting, "https://"+address(port)+"/healthz")
	return p.Start(ctx)
}

// startKWOK simulates the kubelet of one node that is large enough for all pods.
func (c *ControlPlane) startKWOK(ctx context.Context) error {
	if err := c.installStages(ctx); err != nil {
		return err
	}
	config := c.dir.file("kwok.yaml") // empty: otherwise KWOK would read one in the user's home
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return fmt.Errorf("write the configuration of KWOK: %w", err)
	}
	port, err := c.ports.take()
	if err != nil {
		return err
	}
	kubeconfig, err := c.AddUser(kwokUser, adminGroup)
	if err != nil {
		return err
	}
	p := c.process(parts.KWOK,
		"--kubeconfig="+kubeconfig,
		"--config="+config,
		"--manage-all-nodes=true",
		"--enable-crds=Stage",
		"--node-lease-duration-seconds=40",
		"--node-ip="+loopback,
		"--server-address="+address(port),
	)
	p.ready = answersOK(http.DefaultClient, "http://"+address(port)+"/healthz")
	if err := p.Start(ctx); err != nil {
		return err
	}
	return c.createNode(ctx)
}

func (c *ControlPlane) createNode(ctx context.Context) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("10000"),
		corev1.ResourceMemory:           resource.MustParse("100Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"),
		corev1.ResourcePods:             resource.MustParse("100000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName,
			Labels: map[string]string{
				corev1.LabelHostname:   nodeName,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	if err := c.client.Create(ctx, node); err != nil {
		return fmt.Errorf("create the node: %w", err)
	}
	return nil
}
