// SPDX-License-Identifier: Apache-2.0

package controlplane

// EtcdURL returns the URL where etcd serves its API, without credentials.
func (c *ControlPlane) EtcdURL() string { return c.etcdURL }
