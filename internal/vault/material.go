package vault

import "context"

// SealMaterial closes the material of one version of a credential.
func (v *Vault) SealMaterial(ctx context.Context, tenant, ref string, version int64, plain []byte) ([]byte, error) {
	return v.Seal(ctx, tenant, plain, materialBound(tenant, ref, version))
}

// OpenMaterial opens it again.
func (v *Vault) OpenMaterial(ctx context.Context, tenant, ref string, version int64, sealed []byte) ([]byte, error) {
	return v.Unseal(ctx, tenant, sealed, materialBound(tenant, ref, version))
}
