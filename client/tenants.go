package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Tenant is one of the parties that share a host.
type Tenant struct {
	TenantID  string    `json:"tenantId"`
	Name      string    `json:"name"`
	State     string    `json:"state"` // active or suspended
	CreatedAt time.Time `json:"createdAt"`
	Settled   bool      `json:"settled"` // its runs stand still, or go on, as the state has it
}

// NewTenant is a tenant with the first key of its owner. Nobody can show the key
// again.
type NewTenant struct {
	Tenant
	OwnerKey IssuedKey `json:"ownerKey"`

	Raw json.RawMessage `json:"-"`
}

// TenantPage is one page of tenants.
type TenantPage struct {
	Tenants    []Tenant `json:"tenants"`
	NextCursor string   `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// CreateTenant makes a tenant. It takes an administrator of the host. It is sent
// once: the host keeps no record of an answer that holds a credential.
func (c *Client) CreateTenant(ctx context.Context, id, name string) (*NewTenant, error) {
	body := map[string]string{"tenantId": id}
	if name != "" {
		body["name"] = name
	}
	var out NewTenant
	raw, err := c.change(ctx, hostPath+"/tenants", body, &out)
	out.Raw = raw
	return &out, err
}

// ListTenants reads one page of the host's tenants.
func (c *Client) ListTenants(ctx context.Context, o PageOptions) (*TenantPage, error) {
	var out TenantPage
	raw, err := c.read(ctx, hostPath+"/tenants", o.query(), &out)
	out.Raw = raw
	return &out, err
}

// SuspendTenant shuts a tenant out and has its runs stand still; ActivateTenant
// lets it in again.
func (c *Client) SuspendTenant(ctx context.Context, id string) (*Tenant, error) {
	var out Tenant
	_, err := c.change(ctx, hostPath+"/tenants/"+nameSegment(id)+":suspend", nil, &out)
	return &out, err
}

// ActivateTenant lets a suspended tenant in again. Its runs go on.
func (c *Client) ActivateTenant(ctx context.Context, id string) (*Tenant, error) {
	var out Tenant
	_, err := c.change(ctx, hostPath+"/tenants/"+nameSegment(id)+":activate", nil, &out)
	return &out, err
}

// PutMember says what a party belongs to in the caller's tenant.
type PutMember struct {
	Issuer    string   `json:"issuer,omitempty"` // of API keys if empty
	SubjectID string   `json:"subjectId"`
	Name      string   `json:"name,omitempty"`
	Workspace string   `json:"workspace,omitempty"` // the only one it acts in
	Groups    []string `json:"groups,omitempty"`
	Roles     []string `json:"roles,omitempty"`
}

// Member is a party that belongs to a tenant.
type Member struct {
	MemberID  string    `json:"memberId"`
	Issuer    string    `json:"issuer"`
	SubjectID string    `json:"subjectId"`
	Name      string    `json:"name"`
	Workspace string    `json:"workspace"`
	Groups    []string  `json:"groups"`
	Roles     []string  `json:"roles"`
	Scopes    []string  `json:"scopes"` // that the roles come to now
	CreatedAt time.Time `json:"createdAt"`

	Raw json.RawMessage `json:"-"`
}

// MemberPage is one page of members.
type MemberPage struct {
	Members    []Member `json:"members"`
	NextCursor string   `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// PutMember makes a party a member, or says anew what it belongs to.
func (c *Client) PutMember(ctx context.Context, m PutMember) (*Member, error) {
	var out Member
	raw, err := c.change(ctx, hostPath+"/members", m, &out)
	out.Raw = raw
	return &out, err
}

// ListMembers reads one page of the members of the caller's tenant.
func (c *Client) ListMembers(ctx context.Context, o PageOptions) (*MemberPage, error) {
	var out MemberPage
	raw, err := c.read(ctx, hostPath+"/members", o.query(), &out)
	out.Raw = raw
	return &out, err
}

// RemoveMember ends a membership, from the next request on.
func (c *Client) RemoveMember(ctx context.Context, memberID string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: hostPath + "/members/" + nameSegment(memberID)})
	return err
}

// Role is a name for a set of scopes.
type Role struct {
	Role    string   `json:"role"`
	Scopes  []string `json:"scopes"`
	BuiltIn bool     `json:"builtIn"` // every tenant has it

	Raw json.RawMessage `json:"-"`
}

// ListRoles lists the roles members of the caller's tenant can have.
func (c *Client) ListRoles(ctx context.Context) ([]Role, json.RawMessage, error) {
	var out struct {
		Roles []Role `json:"roles"`
	}
	raw, err := c.read(ctx, hostPath+"/roles", nil, &out)
	return out.Roles, raw, err
}

// PutRole makes a role of the caller's tenant, or gives it other scopes.
func (c *Client) PutRole(ctx context.Context, role string, scopes []string) (*Role, error) {
	body, err := encode(map[string]any{"scopes": append([]string{}, scopes...)})
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, call{method: http.MethodPut, path: hostPath + "/roles/" + nameSegment(role), body: body, again: true})
	if err != nil {
		return nil, err
	}
	var out Role
	out.Raw, err = a.into(&out)
	return &out, err
}

// RemoveRole removes a role of the caller's tenant.
func (c *Client) RemoveRole(ctx context.Context, role string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: hostPath + "/roles/" + nameSegment(role)})
	return err
}
