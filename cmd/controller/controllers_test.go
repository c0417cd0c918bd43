// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wanted returns the controllers that a command line selects. Those that it names end in
// an exclamation mark.
func wanted(c choice) []string {
	var names []string
	for _, name := range controllers() {
		on, byName := c.wants(name)
		switch {
		case byName:
			names = append(names, name+"!")
		case on:
			names = append(names, name)
		}
	}
	return names
}

func TestControllersAreChosenByName(t *testing.T) {
	const every = "rollout rolloutschedule clusterrolloutschedule healthcheck environment quarantine clusterrolloutgate deploymentcoordination statefulsetrollout"
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"all by default":                     {nil, every},
		"all by an asterisk":                 {[]string{"--controllers=*"}, every},
		"one alone":                          {[]string{"--controllers=deploymentcoordination"}, "deploymentcoordination!"},
		"two alone":                          {[]string{"--controllers=healthcheck, rollout"}, "rollout! healthcheck!"},
		"all but one":                        {[]string{"--controllers=*,-healthcheck"}, strings.ReplaceAll(every, "healthcheck ", "")},
		"all, and one for certain":           {[]string{"--controllers=*,statefulsetrollout"}, every + "!"},
		"an asterisk at the end":             {[]string{"--controllers=-rollout,*"}, strings.TrimPrefix(every, "rollout ")},
		"the flag twice":                     {[]string{"--controllers=rollout", "--controllers=healthcheck"}, "rollout! healthcheck!"},
		"the same twice":                     {[]string{"--controllers=rollout,rollout"}, "rollout!"},
		"a shard coordinates nothing":        {[]string{"--watch-label-selector=a=b"}, strings.TrimSuffix(every, " deploymentcoordination statefulsetrollout")},
		"a shard that is configured to does": {[]string{"--watch-label-selector=a=b", "--controllers=*,deploymentcoordination"}, strings.TrimSuffix(every, " statefulsetrollout") + "!"},
		"all but quarantines":                {[]string{"--controllers=*,-quarantine"}, strings.ReplaceAll(every, "quarantine ", "")},
		"one namespace":                      {[]string{"--watch-all-namespaces=false"}, strings.NewReplacer("clusterrolloutschedule ", "", "clusterrolloutgate ", "").Replace(every)},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, err := parse(t, "apps", tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Join(wanted(o.chosen), " ")); diff != "" {
				t.Errorf("%v (-want +got):\n%s", tt.args, diff)
			}
		})
	}
}

func TestChoiceOfControllersThatCannotBeMeantIsRefused(t *testing.T) {
	const known = "there are rollout, rolloutschedule, clusterrolloutschedule, healthcheck, environment, quarantine, clusterrolloutgate, deploymentcoordination, statefulsetrollout, and *"
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"an unknown name":           {[]string{"--controllers=*,rollouts"}, `--controllers: "rollouts" is not a controller: ` + known},
		"an unknown one to be off":  {[]string{"--controllers=*,-gate"}, `"gate" is not a controller: ` + known},
		"an empty list":             {[]string{"--controllers="}, `"" is not a controller`},
		"on and off":                {[]string{"--controllers=*,-rollout,rollout"}, "rollout is both on and off"},
		"only off":                  {[]string{"--controllers=-rollout"}, "no controller is on"},
		"the cluster from a corner": {[]string{"--controllers=clusterrolloutschedule", "--watch-all-namespaces=false"}, "clusterrolloutschedule needs --watch-all-namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := parse(t, "apps", tt.args...); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, want it to say %q", err, tt.says)
			}
		})
	}
}
