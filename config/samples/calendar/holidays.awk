# SPDX-License-Identifier: Apache-2.0
#
# Writes a ClusterRolloutSchedule that holds releases on the days of an iCalendar file:
#
#   awk -f holidays.awk holidays.ics > holidays.yaml
#
# It takes events of whole days. For those that have a time of day, or that repeat, it fails:
# the schedule would lack them. Set the zone with -v zone=Europe/Paris.

function fail(why) { print "holidays.awk: " why > "/dev/stderr"; failed = 1; exit 1 }

function date(text) { return substr(text, 1, 4) "-" substr(text, 5, 2) "-" substr(text, 7, 2) }

# before returns the day before a date: an event ends before its DTEND.
function before(text,   year, month, day) {
  year = substr(text, 1, 4) + 0; month = substr(text, 5, 2) + 0; day = substr(text, 7, 2) - 1
  if (day == 0 && --month == 0) { month = 12; year-- }
  if (day == 0) day = month == 2 ? 28 + (year % 4 == 0 && (year % 100 || year % 400 == 0)) : 30 + (month + (month > 7)) % 2
  return sprintf("%04d%02d%02d", year, month, day)
}

# name returns a text as a string of YAML, at most 200 characters long.
function name(text) {
  gsub(/\\[nN]/, " ", text); gsub(/\\/, "", text); gsub(/"/, "'", text)
  return "\"" substr(text, 1, 200) "\""
}

function line(text,   at, key, value) {
  at = index(text, ":"); key = substr(text, 1, at - 1); value = substr(text, at + 1)
  if (text == "BEGIN:VEVENT") { start = end = summary = ""; inside = 1 }
  if (!inside) return
  if (key ~ /^RRULE/) fail("an event repeats: write a rule with months and daysOfMonth")
  if (key ~ /^DT(START|END)/ && value !~ /^[0-9]+$/) fail("an event has a time of day: " value)
  if (key ~ /^DTSTART/) start = value
  if (key ~ /^DTEND/) end = value
  if (key ~ /^SUMMARY/) summary = value
  if (text != "END:VEVENT") return
  inside = 0
  printf "  - name: %s\n    dateRange: {start: \"%s\", end: \"%s\"}\n", name(summary), date(start), date(end == "" ? start : before(end))
}

BEGIN {
  if (zone == "") zone = "Europe/Berlin"
  print "apiVersion: kuberik.com/v1alpha1\nkind: ClusterRolloutSchedule\nmetadata:\n  name: holidays\nspec:"
  print "  namespaceSelector:\n    matchLabels:\n      samples.kuberik.com/environment: production"
  print "  rolloutSelector: {}\n  timezone: " zone "\n  action: Deny\n  rules:"
}
{ sub(/\r$/, "") }
/^[ \t]/ { held = held substr($0, 2); next } # a long line goes on
{ line(held); held = $0 }
END { if (!failed) line(held) }
