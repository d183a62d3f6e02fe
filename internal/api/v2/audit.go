package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/go-json-experiment/json"
)

const maxSequence = 1<<53 - 1

func (a *API) verifyAuditLog(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	from, err := r.QueryInt("fromSeq", 0, maxSequence, 0)
	if err != nil {
		return err
	}
	to, err := r.QueryInt("toSeq", 0, maxSequence, host.ToTheEnd)
	if err != nil {
		return err
	}
	which, _, err := r.QueryOne("chain")
	if err != nil {
		return err
	}
	v, err := a.host.VerifyAudit(r.Context(), c, which, from, to)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return api.JSON(w, http.StatusOK, v)
}

func (a *API) listAudit(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	which, _, err := r.QueryOne("chain")
	if err != nil {
		return err
	}
	cursor, limit, err := a.page(r)
	if err != nil {
		return err
	}
	p, err := a.host.ListAudit(r.Context(), c, which, cursor, limit)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, p)
}

// exportAudit sends a chain line by line. Once the first line is out, whatever goes
// wrong cuts the connection: a file without its last line is recognized as such.
func (a *API) exportAudit(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	which, _, err := r.QueryOne("chain")
	if err != nil {
		return err
	}
	begun := false
	return a.host.ExportAudit(r.Context(), c, which, func(l audit.Line) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", ndjson)
			w.Header().Set("Cache-Control", "no-store")
		}
		b, err := json.Marshal(&l)
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	})
}

func (a *API) auditKeys(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	keys, err := a.host.AuditKeys(r.Context(), c)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, map[string]any{"keys": keys})
}

func (a *API) rotateAuditKey(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := a.host.RotateAuditKey(r.Context(), c)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusCreated, map[string]string{"keyId": id})
}

const ndjson = "application/x-ndjson"

// auditRoutes are the operations on the audit log.
func (a *API) auditRoutes(limit, cursor api.Param) []api.Route {
	chain := api.Param{Name: "chain", Description: "The caller's tenant's, or the host's own, which is for its operator.", Schema: `{"type":"string","enum":["tenant","host"]}`}
	sequence := func(name, what string) api.Param {
		return api.Param{Name: name, Description: what, Schema: `{"type":"integer","minimum":0}`}
	}
	return []api.Route{
		{
			Method: "GET", Pattern: "/audit/verify", ID: "verifyAuditLog", Spec: "security-defaults.md §Audit-log integrity", Protocol: true,
			Summary: "Walk the audit log and say whether it holds.", Scope: identity.AuditRead,
			Query:   []api.Param{sequence("fromSeq", "Where to begin; the start if absent."), sequence("toSeq", "Where to end, inclusive; the end if absent."), chain},
			Returns: map[int]api.Response{200: {Description: "The verdict, with the signed checkpoints of the range.", Schema: "audit-verify-result"}},
			Handle:  a.as(a.verifyAuditLog),
		},
		{
			Method: "GET", Pattern: "/host/fermata/audit", ID: "listAuditLog", Scope: identity.AuditRead,
			Summary: "Entries of the audit log, the newest first.", Query: []api.Param{limit, cursor, chain},
			Returns: map[int]api.Response{200: {Description: "A page of entries.", Schema: `{"type":"object"}`}}, Handle: a.as(a.listAudit),
		},
		{
			Method: "GET", Pattern: "/host/fermata/audit/export", ID: "exportAuditLog", Scope: identity.AuditRead, Stream: true,
			Summary: "The whole audit log, one JSON object a line, to be verified without the host.", Query: []api.Param{chain},
			Returns: map[int]api.Response{200: {Description: "Header, keys, entries, checkpoints, end.", ContentType: ndjson, Schema: `{"type":"string"}`}},
			Handle:  a.as(a.exportAudit),
		},
		{
			Method: "GET", Pattern: "/host/fermata/audit/keys", ID: "listAuditKeys", Scope: identity.AuditRead,
			Summary: "Every public key that has signed checkpoints.",
			Returns: map[int]api.Response{200: {Description: "The keys.", Schema: `{"type":"object"}`}}, Handle: a.as(a.auditKeys),
		},
		{
			Method: "POST", Pattern: "/host/fermata/audit/keys", ID: "rotateAuditKey", Scope: identity.AuditManage,
			Summary: "Sign checkpoints with a new key from now on, and destroy the one before.",
			Returns: map[int]api.Response{201: {Description: "The id of the new key.", Schema: `{"type":"object"}`}}, Handle: a.as(a.rotateAuditKey),
		},
	}
}
