// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/admission/singleobject"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// After a failed read or write, the next attempt follows after these pauses. A change by
// another client wakes the rotator earlier.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Rotator keeps a certificate in a Secret and makes its audience trust it. Every replica
// runs one. The first replica writes the Secret, and the others find what they need.
type Rotator struct {
	audience audience
	core     coreclient.CoreV1Interface
	secret   types.NamespacedName
	creates  bool // create the Secret if there is none
	clock    clock.Clock
	log      logr.Logger
	wake     chan struct{}

	mu      sync.Mutex
	serving *tls.Certificate
	problem error
}

// NewRotator returns a rotator for the webhook, with the configuration and the Secret of
// these names.
func NewRotator(config *rest.Config, transport *http.Client, names admission.Names, clock clock.Clock, log logr.Logger) (*Rotator, error) {
	registrations, err := admissionclient.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	k, err := NewPublisher(config, transport, "", names.Certificate, clock, log)
	if err != nil {
		return nil, err
	}
	k.audience, k.creates = apiServer{registrations.MutatingWebhookConfigurations(), names.Webhook}, true
	return k, nil
}

// NewPublisher returns a rotator for a server that clients look for under a host name. The
// clients read the authorities from the Secret. The Secret must exist.
func NewPublisher(config *rest.Config, transport *http.Client, host string, secret types.NamespacedName, clock clock.Clock, log logr.Logger) (*Rotator, error) {
	core, err := coreclient.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Rotator{
		audience: readers{host}, core: core, secret: secret, clock: clock, log: log,
		wake: make(chan struct{}, 1), problem: errors.New("there is no certificate yet"),
	}, nil
}

// NeedLeaderElection returns false: every replica serves.
func (*Rotator) NeedLeaderElection() bool { return false }

// Certificate returns the certificate to serve now, or why there is none.
func (k *Rotator) Certificate() (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.serving == nil {
		return nil, k.problem
	}
	return k.serving, nil
}

// Start maintains the certificate until ctx ends.
func (k *Rotator) Start(ctx context.Context) error {
	stored := singleobject.Watch(k.core.RESTClient(), "secrets", &corev1.Secret{}, k.secret)
	stored.OnChange(k.Look)
	var watching sync.WaitGroup
	watching.Go(func() { _ = stored.Start(ctx) })
	defer watching.Wait()

	retry := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry)
	for {
		until, err := k.keep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			retry.Forget(k.secret)
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			continue // another replica wrote first
		default:
			until = k.clock.Now().Add(retry.When(k.secret))
			k.log.Info("a certificate is not in order", "secret", k.secret.String(), "reason", err.Error())
		}
		if !k.sleep(ctx, until) {
			return nil
		}
	}
}

// Look makes the rotator check everything again, because the configuration has changed. It
// does not block.
func (k *Rotator) Look() {
	select {
	case k.wake <- struct{}{}:
	default: // a check is already due
	}
}

// sleep returns false once ctx has ended. If the time came while the rotator worked, it
// checks again at once. RecheckAt is always later than the time of a check, so this ends.
func (k *Rotator) sleep(ctx context.Context, until time.Time) bool {
	pause := until.Sub(k.clock.Now())
	if pause <= 0 {
		return ctx.Err() == nil
	}
	timer := k.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-k.wake:
	case <-timer.C():
	case <-ctx.Done():
		return false
	}
	return true
}

// keep updates the Secret, then the authorities that its audience trusts, then the
// certificate that is served. It returns the time until which this stays correct if
// nobody changes anything. It reads past the caches, because its own writes wake it.
func (k *Rotator) keep(ctx context.Context) (time.Time, error) {
	now := k.clock.Now()
	store, trusted, err := k.agree(ctx, now)
	var serving *tls.Certificate
	if store.Newest != nil {
		var failed error
		serving, failed = store.Serving(trusted, now).TLS()
		err = errors.Join(err, failed)
	}
	k.mu.Lock()
	k.serving, k.problem = serving, err
	k.mu.Unlock()
	if err != nil {
		return time.Time{}, err
	}
	return store.RecheckAt(now), nil
}

// agree writes what must be written. It returns what is stored and which authorities the
// audience trusts.
func (k *Rotator) agree(ctx context.Context, now time.Time) (Store, []byte, error) {
	target, err := k.audience.look(ctx)
	if err != nil {
		return Store{}, nil, err
	}
	secret, err := k.read(ctx)
	if err != nil {
		return Store{}, nil, err
	}
	held := Read(secret.Data)
	store, err := held.Renewed(target.host, now)
	if err != nil {
		return held, target.trusted, err
	}
	if err := k.store(ctx, secret, store); err != nil {
		return held, target.trusted, err
	}
	if bytes.Equal(target.trusted, store.Authorities()) {
		return store, target.trusted, nil
	}
	if err := k.audience.trust(ctx, target, store.Authorities()); err != nil {
		return store, target.trusted, err
	}
	return store, store.Authorities(), nil
}

// read returns the stored Secret, or an empty Secret that may be created.
func (k *Rotator) read(ctx context.Context) (*corev1.Secret, error) {
	secret, err := k.core.Secrets(k.secret.Namespace).Get(ctx, k.secret.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && k.creates:
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: k.secret.Namespace, Name: k.secret.Name, Labels: map[string]string{admission.PartOfLabel: admission.PartOf},
		}}, nil
	case err != nil:
		return nil, fmt.Errorf("read the Secret of the certificate: %w", err)
	}
	return secret, nil
}

// store writes a store to the Secret, unless the Secret already contains it. A write that
// is based on an old copy fails. The next attempt reads what another replica wrote.
func (k *Rotator) store(ctx context.Context, secret *corev1.Secret, store Store) error {
	data := store.Data()
	if maps.EqualFunc(secret.Data, data, bytes.Equal) {
		return nil
	}
	secret.Data = data
	var err error
	if secret.ResourceVersion == "" {
		_, err = k.core.Secrets(k.secret.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: write.FieldManager})
	} else {
		_, err = k.core.Secrets(k.secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: write.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("store the certificate: %w", err)
	}
	k.log.Info("stored a certificate", "secret", k.secret.String(), "validUntil", store.Newest.leaf.NotAfter)
	return nil
}
