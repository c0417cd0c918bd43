// SPDX-License-Identifier: Apache-2.0

package clustergate

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/env"
)

var (
	// testPlane is an API server with the CRDs of Flux and of this project.
	testPlane *controlplane.ControlPlane
	// testClient has all permissions and no cache.
	testClient client.WithWatch
)

func TestMain(m *testing.M) { env.Main(m, &testPlane, &testClient) }
