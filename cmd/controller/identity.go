// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/controller/rollout"
	"github.com/fluxrollouts/rollout-controller/internal/identity"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
)

// How the names in approvals are checked.
const (
	identityVerified = "Verified"
	identityTrusted  = "Trusted"
)

const (
	validatingPolicies       = "validatingadmissionpolicies"
	validatingPolicyBindings = "validatingadmissionpolicybindings"
)

var validatingPolicy = kind{
	GroupKind: schema.GroupKind{Group: admissionv1.GroupName, Kind: "ValidatingAdmissionPolicy"}, versions: []string{"v1"},
}

// bindIdentity adds the flag of identities.
func (o *options) bindIdentity(flags *flag.FlagSet) {
	flags.StringVar(&o.approvalIdentity, "approval-identity", identityVerified,
		"Verified lets approvals count while the admission policies are in force that check the names in them; Trusted always: something else checks them.")
	flags.DurationVar(&o.approvalRetention, "approval-retention", approvals.KeptFor,
		"How long approvals and overrides are kept after they were used, or can be used no more. Promotions delete older ones; rejections stay.")
}

func (o *options) completeIdentity(*flag.FlagSet) error {
	if o.approvalIdentity != identityVerified && o.approvalIdentity != identityTrusted {
		return fmt.Errorf("--approval-identity=%s: it is %s or %s", o.approvalIdentity, identityVerified, identityTrusted)
	}
	if o.approvalRetention <= 0 {
		return fmt.Errorf("--approval-retention=%s: it must be longer than 0", o.approvalRetention)
	}
	return nil
}

// watchIdentity has Rollouts count approvals while the API server vouches for their names.
func (w wiring) watchIdentity(ctx context.Context, rollouts *rollout.Reconciler) error {
	if w.approvalIdentity == identityTrusted {
		rollouts.Identity = identity.Trusted
		return nil
	}
	lack, err := w.cluster.lacksPolicies(ctx)
	if err != nil {
		return err
	}
	if lack != "" {
		rollouts.Identity = identity.Unverified(lack)
		return nil
	}
	caches := policyCaches{}
	for _, name := range identity.Names {
		if caches[name], err = w.policyCache(name); err != nil {
			return fmt.Errorf("prepare to watch the policy %s: %w", name, err)
		}
		if err := rollouts.WatchPolicies(caches[name]); err != nil {
			return err
		}
	}
	rollouts.Identity = (&identity.Policies{Reader: caches, Now: time.Now}).Identity
	return nil
}

// lacksPolicies returns why policies cannot be read; empty if they can.
func (c cluster) lacksPolicies(ctx context.Context) (string, error) {
	if served, err := c.serves(validatingPolicy); err != nil || !served {
		return "the API server serves no ValidatingAdmissionPolicies, which needs Kubernetes 1.30", err
	}
	for _, resource := range []string{validatingPolicies, validatingPolicyBindings} {
		for _, name := range identity.Names {
			missing, err := c.lacksReading(ctx, right{group: admissionv1.GroupName, resource: resource, name: name}, "")
			if missing.verb != "" || err != nil {
				return fmt.Sprintf("the controller may not %s: grant it what the manager role allows, and start it again", missing), err
			}
		}
	}
	return "", nil
}

// policyCache returns a cache of the policy and the binding of one name: the controller may
// read no others.
func (w wiring) policyCache(name string) (ctrlcache.Cache, error) {
	only := ctrlcache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	policies, err := ctrlcache.New(w.GetConfig(), ctrlcache.Options{
		HTTPClient: w.GetHTTPClient(), Scheme: w.GetScheme(), Mapper: w.GetRESTMapper(),
		ByObject: map[client.Object]ctrlcache.ByObject{
			&admissionv1.ValidatingAdmissionPolicy{}: only, &admissionv1.ValidatingAdmissionPolicyBinding{}: only,
		},
	})
	if err != nil {
		return nil, err
	}
	return policies, w.Add(startedCache{policies})
}

// startedCache is a cache that the manager starts together with its own.
type startedCache struct{ ctrlcache.Cache }

// GetCache is the method with which the manager recognizes a cache.
func (c startedCache) GetCache() ctrlcache.Cache { return c.Cache }

// policyCaches are the caches of policies by name.
type policyCaches map[string]ctrlcache.Cache

// Get reads the policy or the binding of a name.
func (c policyCaches) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c[key.Name].Get(ctx, key, o, options...)
}
