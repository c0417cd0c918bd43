// SPDX-License-Identifier: Apache-2.0

package promotion

// runsTag reports whether the current release has that tag, and is one of the image of the
// policy.
func (in Input) runsTag(tag string) bool {
	current := in.Rollout.Current()
	return current != nil && current.Version.Tag == tag && !in.Policy.IsOfAnother(current)
}
