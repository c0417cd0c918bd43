// SPDX-License-Identifier: Apache-2.0

package web

import "net/http"

func calendar(w http.ResponseWriter, r *http.Request, v *Viewer) {
	object, err := v.Source.Calendar(r.Context())
	reply(w, object, err)
}
