// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unreadable is the rule about what cannot be read. It has no check: reading finds it.
const unreadable = "R100"

// Rule is what can be found.
type Rule struct {
	// ID is the letter R and three digits. It never changes.
	ID string `json:"id"`
	// Severity is that of all findings of the rule.
	Severity Severity `json:"severity"`
	// Title says in one sentence what the rule finds.
	Title string `json:"title"`
}

// checkedRule is a rule and how it is checked.
type checkedRule struct {
	Rule
	check func(*report)
	// filesOnly is true if the rule is about what is written in Git: in a cluster, the
	// controller has written it.
	filesOnly bool
}

var rules = []checkedRule{
	{Rule: Rule{unreadable, SeverityError, "A file cannot be read."}},
	{Rule: Rule{"R101", SeverityError, "A field is unknown, or its value is not allowed."}, check: checkSchema},
	{Rule: Rule{"R102", SeverityWarning, "An object has a version of Flux's image API that newer versions of Flux do not serve."}, check: checkImageVersion},
	{Rule: Rule{"R201", SeverityError, "The ImagePolicy of a Rollout does not exist in its namespace."}, check: checkImagePolicy},
	{Rule: Rule{"R202", SeverityError, "An annotation names a Rollout that does not exist."}, check: checkAnnotations},
	{Rule: Rule{"R203", SeverityError, "A manifest sets the field that a Rollout writes."}, check: checkOwnership, filesOnly: true},
	{Rule: Rule{"R204", SeverityError, "Another field takes precedence over the one that a Rollout writes."}, check: checkPrecedence},
	{Rule: Rule{"R205", SeverityError, "An annotation has a variable name or a path that cannot be used."}, check: checkNamesAndPaths},
	{Rule: Rule{"R206", SeverityError, "Image automation and a Rollout write the same field."}, check: checkMarkers, filesOnly: true},
	{Rule: Rule{"R207", SeverityWarning, "A Rollout has no target."}, check: checkTargets},
	{Rule: Rule{"R208", SeverityWarning, "A variable that a Rollout writes is not used, or has no value before the first promotion."}, check: checkVariableUse, filesOnly: true},
	{Rule: Rule{"R209", SeverityError, "A Rollout and the Kustomization that applies it wait for each other."}, check: checkCycle},
	{Rule: Rule{"R210", SeverityError, "An annotation is on an object of a kind on which it has no effect."}, check: checkMisplaced},
	{Rule: Rule{"R211", SeverityError, "A Rollout cannot write the field that an annotation assigns to it."}, check: checkWritable},
	{Rule: Rule{"R212", SeverityWarning, "Nothing applies an OCIRepository that a Rollout writes."}, check: checkConsumed},
	{Rule: Rule{"R213", SeverityWarning, "A Rollout does not wait for what applies its OCIRepository."}, check: checkFollowed},
	{Rule: Rule{"R214", SeverityWarning, "An ImagePolicy cannot tell the builds of a version apart."}, check: checkBuildMetadata},
	{Rule: Rule{"R215", SeverityWarning, "The ImagePolicy of a Rollout admits a single tag."}, check: checkFloatingTag},
	{Rule: Rule{"R216", SeverityError, "An OCIRepository gets the digest of a Rollout that does not write its tag."}, check: checkDigestAnnotations},
	{Rule: Rule{"R217", SeverityWarning, "Flux deploys the tag latest until a Rollout has promoted a release."}, check: checkUnpromoted},
	{Rule: Rule{"R218", SeverityError, "A HelmRelease does not show which commit of a GitRepository it has deployed."}, check: checkGitCharts},
	{Rule: Rule{"R219", SeverityError, "An ExternalArtifact does not show a release that it is made of."}, check: checkArtifactRevisions},
	{Rule: Rule{"R220", SeverityWarning, "An ExternalArtifact does not show changes of its other sources."}, check: checkSourcesOfArtifacts},
	{Rule: Rule{"R301", SeverityWarning, "A Rollout selects no HealthCheck."}, check: checkSelection},
	{Rule: Rule{"R302", SeverityError, "A healthCheckSelector has both forms."}, check: checkSelectorForms},
	{Rule: Rule{"R303", SeverityError, "A HealthCheck has no Kustomization or HelmRelease to evaluate."}, check: checkEvaluated},
	{Rule: Rule{"R304", SeverityWarning, "A HealthCheck has no class, so that no controller may evaluate it."}, check: checkClass},
	{Rule: Rule{"R305", SeverityWarning, "A release that never becomes healthy never fails."}, check: checkDeployTimeout},
	{Rule: Rule{"R306", SeverityWarning, "A bake takes longer than every window of the schedules."}, check: checkBakeTime},
	{Rule: Rule{"R307", SeverityError, "A HealthCheck cannot be measured as it is."}, check: checkMeasurable},
	{Rule: Rule{"R308", SeverityWarning, "A Rollout never goes back by itself, although it is meant to."}, check: checkRollbackActs},
	{Rule: Rule{"R309", SeverityWarning, "A rollback is overdue before Flux has stopped waiting for the release that failed."}, check: checkOverdue},
	{Rule: Rule{"R310", SeverityWarning, "A Rollout never reports a failure, although it is meant to."}, check: checkReporting},
	{Rule: Rule{"R311", SeverityWarning, "A quarantine holds nothing."}, check: checkUselessQuarantines},
	{Rule: Rule{"R312", SeverityWarning, "Several Rollouts deploy by one object, and one is to go back by itself."}, check: checkShared},
	{Rule: Rule{"R313", SeverityWarning, "A HealthCheck counts the same errors more than once."}, check: checkOverlap},
	{Rule: Rule{"R401", SeverityError, "A time zone, a date or a selector cannot be evaluated."}, check: checkEvaluation},
	{Rule: Rule{"R402", SeverityWarning, "A schedule selects nothing, or is over."}, check: checkUselessSchedules},
	{Rule: Rule{"R403", SeverityWarning, "The schedules of a Rollout are never open together in the next 366 days."}, check: checkNeverOpen},
	{Rule: Rule{"R404", SeverityError, "A gate is for a Rollout that does not exist, or an object is defined twice."}, check: checkGatesAndDuplicates},
	{Rule: Rule{"R405", SeverityWarning, "A gate asks for approvals in a role that nobody has."}, check: checkApproverRoles},
	{Rule: Rule{"R406", SeverityWarning, "A gate asks for approvals of releases whose digests are not known."}, check: checkApprovedDigests},
	{Rule: Rule{"R407", SeverityWarning, "A gate that asks for approvals is one that programs write."}, check: checkWrittenGates},
	{Rule: Rule{"R501", SeverityError, "A DeploymentCoordination selects every Deployment."}, check: checkCoordinationSelector},
	{Rule: Rule{"R502", SeverityWarning, "A workload works against the controller that orders its rollout."}, check: checkWorkloads},
	{Rule: Rule{"R601", SeverityError, "The Rollout of an Environment does not exist in its namespace."}, check: checkEnvironmentRollout},
	{Rule: Rule{"R602", SeverityError, "A Rollout names an Environment that does not exist, or that is of another Rollout."}, check: checkEnvironmentRef},
	{Rule: Rule{"R603", SeverityWarning, "An environment comes after one that does not exist."}, check: checkUpstreams},
	{Rule: Rule{"R604", SeverityError, "An Environment does not let in the namespace of one that comes after it."}, check: checkAccess},
	{Rule: Rule{"R605", SeverityError, "An environment comes after itself."}, check: checkEnvironmentCycle},
	{Rule: Rule{"R606", SeverityError, "Two Environments of a Rollout are the same environment."}, check: checkSameEnvironment},
	{Rule: Rule{"R607", SeverityWarning, "A soak time has no effect."}, check: checkSoakTime},
	{Rule: Rule{"R608", SeverityWarning, "The digests by which environments recognize releases are not known."}, check: checkDigests},
	{Rule: Rule{"R609", SeverityError, "The repository of a report is not the name of a repository."}, check: checkReportRepository},
	{Rule: Rule{"R610", SeverityWarning, "Reports are in a repository that releases are pulled from."}, check: checkReportsAmongReleases},
	{Rule: Rule{"R611", SeverityWarning, "An Environment of type oci has no report to write or to read."}, check: checkNoReports},
	{Rule: Rule{"R612", SeverityWarning, "A requeueInterval is shorter than any that is used."}, check: checkRequeueInterval},
}

// needs are the kinds of which a rule says that there is no object, other than by a name.
var needs = map[string][]schema.GroupKind{
	"R207": {repositoryKind, gitRepositoryKind, kustomizationKind, helmReleaseKind},
	"R212": {kustomizationKind, helmReleaseKind, generatorKind},
	"R213": {kustomizationKind, helmReleaseKind},
	"R301": {healthCheckKind},
	"R311": {rolloutKind},
	"R402": {rolloutKind},
	"R603": {environmentKind},
}

// guesses reports whether a rule would have to guess what is there.
func guesses(rule string, unlisted []schema.GroupKind) bool {
	return slices.ContainsFunc(needs[rule], func(kind schema.GroupKind) bool { return slices.Contains(unlisted, kind) })
}

// Rules returns all rules, sorted by ID.
func Rules() []Rule {
	all := make([]Rule, 0, len(rules))
	for i := range rules {
		all = append(all, rules[i].Rule)
	}
	return all
}

// IsRule reports whether a rule has the ID.
func IsRule(id string) bool {
	return slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == id })
}
