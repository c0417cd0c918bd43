// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigIsNeverReadHalfWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				if err := writeWhole(path, kubeconfig(&rest.Config{Host: "https://example.com"})); err != nil {
					t.Error(err)
				}
				config, err := clientcmd.LoadFromFile(path)
				if err != nil || len(config.Clusters) != 1 {
					t.Errorf("read %+v, %v", config, err)
					return
				}
			}
		})
	}
	group.Wait()
}
