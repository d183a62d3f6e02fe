package store

// Turns picks up to limit of runs that could be claimed, tenants taking turns: the
// first of each, then the second of each, and so on, each tenant's in the order they
// have. So one tenant's many take nothing from another's few. A limit of zero or less
// picks all.
func Turns(rows []Run, limit int) []Run {
	if limit <= 0 || len(rows) <= limit {
		return rows
	}
	var order []string
	of := map[string][]Run{}
	for _, r := range rows {
		if of[r.ID.Tenant] == nil {
			order = append(order, r.ID.Tenant)
		}
		of[r.ID.Tenant] = append(of[r.ID.Tenant], r)
	}
	out := make([]Run, 0, limit)
	for len(out) < limit {
		for _, tenant := range order {
			if next := of[tenant]; len(next) > 0 && len(out) < limit {
				out, of[tenant] = append(out, next[0]), next[1:]
			}
		}
	}
	return out
}
