// SPDX-License-Identifier: Apache-2.0

package web

import "net/http"

func incidents(w http.ResponseWriter, r *http.Request, v *Viewer) {
	object, err := v.Source.Incidents(r.Context())
	reply(w, object, err)
}
