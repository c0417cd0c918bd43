// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/keys"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// reportRemedies are what to do about Environments that are not ready because of reports.
// Those with keys have a command. The last three do not hold the releases of their own
// Rollout.
var reportRemedies = map[string]struct{ means, remedy, keys string }{
	environmentsv1.UpstreamNotTrustedReason: {holds, "compare cluster, namespace and rollout of the upstream, and the keys of both clusters", "list"},
	environmentsv1.NoTrustedKeysReason:      {holds, "in the cluster of the upstream, print its public key", "public"},
	environmentsv1.SigningKeyMissingReason:  {hides, "create a key", "create"},
	environmentsv1.PublishFailedReason:      {hides, "look at the login that spec.backend.secret names, and its right to push", ""},
	environmentsv1.ReportTakenReason:        {hides, "give each cluster a --cluster-name and a spec.backend.project of its own, or take over the reports of a cluster that is gone", ""},
}

// What an Environment that is not ready means.
const (
	holds = "until it is ready, its Rollout promotes nothing automatically"
	hides = "until it is ready, environments in other clusters learn nothing new of this one"
)

// remedyFor returns what to do about an Environment that is not ready.
func (h installationHealth) remedyFor(reason string) string {
	switch is, known := reportRemedies[reason]; {
	case !known:
		return "do what the message says; " + holds
	case is.keys == "":
		return is.remedy + "; " + is.means
	case is.keys == "public":
		return fmt.Sprintf("%s: %s   # %s", is.remedy, h.printElsewhere(), is.means)
	default:
		return fmt.Sprintf("%s: %s   # %s", is.remedy, h.CommandLine("", "keys", is.keys), is.means)
	}
}

// printElsewhere returns the command that prints the public key of another cluster. The
// connection of this call is to the wrong one.
func (h installationHealth) printElsewhere() string { return h.Called + " keys public" }

// exchanging are the Environments that exchange reports with other clusters.
type exchanging struct {
	// writing have a report to write. reading have an upstream in another cluster, and no
	// Secret of their own with keys; verifying have one.
	writing, reading, verifying []environmentsv1.Environment
}

func exchangingAmong(all []environmentsv1.Environment) exchanging {
	var found exchanging
	for _, e := range all {
		if e.Spec.Backend.Type != environmentsv1.BackendOCI {
			continue
		}
		if e.Spec.Backend.Project != "" {
			found.writing = append(found.writing, e)
		}
		switch isReading := slices.ContainsFunc(e.GetUpstreams(), environmentsv1.Upstream.IsRemote); {
		case isReading && e.Spec.Backend.Verify != nil:
			found.verifying = append(found.verifying, e)
		case isReading:
			found.reading = append(found.reading, e)
		}
	}
	return found
}

func (x exchanging) none() bool { return len(x.writing)+len(x.reading)+len(x.verifying) == 0 }

// reports finds what keeps environments from exchanging reports: how the controller is
// started, and keys that are missing or cannot be used.
func (h installationHealth) reports(ctx context.Context, open program.Cluster, objects []map[string]any) ([]lint.Finding, []lint.NotChecked) {
	x := exchangingAmong(environmentsIn(objects))
	if x.none() {
		return nil, nil
	}
	r := &reportCheck{installationHealth: h, exchanging: x, open: open, checked: map[types.NamespacedName]bool{}, known: map[types.NamespacedName]report.TrustedKeys{}}
	for _, e := range x.verifying {
		r.trusted(ctx, types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.Backend.Verify.SecretRef.Name}, "spec.backend.verify of Environment "+e.Namespace+"/"+e.Name, e)
	}
	if reason := h.unknownInstances(); reason != "" {
		r.notChecked = append(r.notChecked, lint.NotChecked{Rule: reportFlags, Reason: reason})
		return r.findings, r.notChecked
	}
	for _, i := range h.instances {
		if i.Environments {
			r.instance(ctx, i)
		}
	}
	return r.findings, r.notChecked
}

type reportCheck struct {
	installationHealth
	exchanging
	open       program.Cluster
	checked    map[types.NamespacedName]bool
	known      map[types.NamespacedName]report.TrustedKeys // of Secrets whose keys can be used
	findings   []lint.Finding
	notChecked []lint.NotChecked
}

// instance checks the flags of an instance that acts for Environments, and its Secrets.
func (r *reportCheck) instance(ctx context.Context, i installation.Instance) {
	if !i.Reports {
		r.flag(i, "there are Environments of type oci, and the feature gate EnvironmentReports is off: nothing is read or written for them", "remove it from --feature-gates")
		return
	}
	if its := actedFor(i, r.writing); len(its) > 0 {
		r.writer(ctx, i, its[0])
	}
	if its := actedFor(i, r.reading); len(its) > 0 {
		r.reader(ctx, i, its)
	}
}

func (r *reportCheck) writer(ctx context.Context, i installation.Instance, e environmentsv1.Environment) {
	if i.ClusterName == "" || i.SigningKeySecret == "" {
		r.flag(i, nameOf(e)+" has a report to write, and the controller has no --cluster-name or no --signing-key-secret", "create a key, and set both flags: "+r.CommandLine("", "keys", "create"))
		return
	}
	r.signing(ctx, types.NamespacedName{Namespace: i.Namespace, Name: i.SigningKeySecret})
}

func (r *reportCheck) reader(ctx context.Context, i installation.Instance, its []environmentsv1.Environment) {
	if i.TrustedKeysSecret == "" {
		r.flag(i, nameOf(its[0])+" reads a report of another cluster, and no keys are trusted", "set --trusted-keys-secret, or spec.backend.verify of the Environment")
		return
	}
	r.trusted(ctx, types.NamespacedName{Namespace: i.Namespace, Name: i.TrustedKeysSecret}, "--trusted-keys-secret", its...)
}

// actedFor returns the Environments for which an instance may act.
func actedFor(i installation.Instance, all []environmentsv1.Environment) []environmentsv1.Environment {
	return slices.DeleteFunc(slices.Clone(all), func(e environmentsv1.Environment) bool { return i.Only != "" && i.Only != e.Namespace })
}

func nameOf(e environmentsv1.Environment) string {
	return "Environment " + e.Namespace + "/" + e.Name
}

func (r *reportCheck) flag(i installation.Instance, message, remedy string) {
	r.findings = append(r.findings, lint.Finding{
		Rule: reportFlags, Severity: lint.SeverityError, Object: "Deployment " + i.Namespace + "/" + i.Name, Message: message, Remedy: remedy,
	})
}

func (r *reportCheck) signing(ctx context.Context, secret types.NamespacedName) {
	r.keys(ctx, secret, "--signing-key-secret", "create a key: "+r.CommandLine("", "keys", "create"), func(data map[string][]byte) error {
		_, err := keys.SigningKeyIn(secret.Name, data)
		return err
	})
}

// trusted checks a Secret with the keys that Environments verify reports with.
func (r *reportCheck) trusted(ctx context.Context, secret types.NamespacedName, field string, readers ...environmentsv1.Environment) {
	r.keys(ctx, secret, field, "add the public key that another cluster prints: "+r.printElsewhere(), func(data map[string][]byte) error {
		keys, err := report.ParseTrustedKeys("Secret "+secret.Name, data)
		if err == nil {
			r.known[secret] = keys
		}
		return err
	})
	keys, canBeUsed := r.known[secret]
	for _, e := range readers {
		for _, u := range e.GetUpstreams() {
			if canBeUsed && u.IsRemote() {
				r.signers(secret, keys.EntriesFor(u.Cluster), u, nameOf(e))
			}
		}
	}
}

// signers checks which entries of a Secret may sign for an upstream.
func (r *reportCheck) signers(secret types.NamespacedName, entries []string, u environmentsv1.Upstream, object string) {
	of := fmt.Sprintf("may sign for cluster %s of upstream %s", u.Cluster, u.Environment)
	entry := u.Cluster + report.TrustedSuffix
	f := lint.Finding{Rule: reportKeys, Object: object}
	switch forAny := slices.IndexFunc(entries, report.IsForAny); {
	case len(entries) == 0:
		f.Severity, f.Message = lint.SeverityError, fmt.Sprintf("no key of Secret %s %s", secret, of)
		f.Remedy = fmt.Sprintf("add its public key as %s; print it in that cluster: %s", entry, r.printElsewhere())
	case forAny >= 0:
		f.Severity, f.Message = lint.SeverityWarning, fmt.Sprintf("%s of Secret %s %s, as for every other one", entries[forAny], secret, of)
		f.Remedy = "name each key after its cluster, such as " + entry
	default:
		return
	}
	r.findings = append(r.findings, f)
}

// keys checks a Secret with keys, once.
func (r *reportCheck) keys(ctx context.Context, secret types.NamespacedName, field, remedy string, parse func(map[string][]byte) error) {
	if r.checked[secret] {
		return
	}
	r.checked[secret] = true
	data, err := keys.SecretData(ctx, r.open, secret.Namespace, secret.Name)
	switch {
	case apierrors.IsForbidden(err):
		r.notChecked = append(r.notChecked, lint.NotChecked{Rule: reportKeys, Object: "Secret " + secret.String(), Reason: "you may not read the Secret of " + field})
		return
	case err == nil:
		err = parse(data)
	}
	if err != nil {
		r.findings = append(r.findings, lint.Finding{
			Rule: reportKeys, Severity: lint.SeverityError, Object: "Secret " + secret.String(), Message: fmt.Sprintf("the keys of %s cannot be used: %s", field, err), Remedy: remedy,
		})
	}
}
