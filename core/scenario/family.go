package scenario

import "slices"

// Family is the code that shards, reduces and updates: what Optim.Name picks.
type Family uint8

// The families.
const (
	FamilyNeMo  Family = iota // NeMo on Apex
	FamilyApex                // Apex by itself
	FamilyMCore               // Megatron-Core
	FamilyDDP                 // PyTorch DDP
	numFamilies
)

var (
	optimNames  = []string{NeMoAdam, PlainApex, MCoreAdam, TorchDDP}
	familyNames = []string{"NeMo, Apex", "Apex alone", "Megatron-Core", "PyTorch DDP"}
)

// simulated are the families that can be evaluated.
var simulated = [numFamilies]bool{FamilyNeMo: true, FamilyApex: true, FamilyMCore: true, FamilyDDP: true}

// String returns the family as a reader calls it.
func (f Family) String() string { return familyNames[f] }

// Optimizer returns the name under which a document asks for it.
func (f Family) Optimizer() string { return optimNames[f] }

// Families is a set of them, one bit each.
type Families uint8

// Sets that fields are read by.
const (
	byNeMo    Families = 1 << FamilyNeMo
	byPlain   Families = 1 << FamilyApex
	byMCore   Families = 1 << FamilyMCore
	byDDP     Families = 1 << FamilyDDP
	byApex             = byNeMo | byPlain
	byExperts          = byMCore | byDDP
)

// Family returns the family of the optimizer that s names.
func (s *Scenario) Family() Family {
	if i := slices.Index(optimNames, s.Optim.Name); i > 0 {
		return Family(i)
	}
	return FamilyNeMo
}

// Plain reports whether Apex's class is used without NeMo.
func (s *Scenario) Plain() bool { return s.Optim.Name == PlainApex }

// MCore reports whether Megatron-Core's distributed optimizer is used.
func (s *Scenario) MCore() bool { return s.Optim.Name == MCoreAdam }

// DDP reports whether PyTorch's DistributedDataParallel is used.
func (s *Scenario) DDP() bool { return s.Optim.Name == TorchDDP }

// Applies reports whether the field has any effect with the optimizer that s names.
func (f *Field) Applies(s *Scenario) bool { return f.ReadBy == 0 || f.ReadBy.Has(s.Family()) }

// WithoutEffect says why the field, which does not apply, has none.
func (f *Field) WithoutEffect(s *Scenario) string {
	family := s.Family()
	switch {
	case f.ReadBy == byPlain && family == FamilyNeMo:
		return "NeMo decides this by itself; it is for " + PlainApex
	case f.Path == pathCap && family == FamilyMCore:
		return family.Optimizer() + " does not read it: its buckets are counted in parameters (" + pathBucketSize + ")"
	case f.Path == pathCap && family == FamilyDDP:
		return family.Optimizer() + " does not read it; " + pathDDPCap + " is its own"
	case f.ReadBy&(f.ReadBy-1) == 0: // one alone reads it
		return family.Optimizer() + " does not read it; it is for " + f.ReadBy.first().Optimizer()
	}
	return family.Optimizer() + " does not read it"
}

// Has reports whether a family is in the set.
func (s Families) Has(f Family) bool { return s&(1<<f) != 0 }

// first returns the first family of a set that is not empty.
func (s Families) first() Family {
	f := FamilyNeMo
	for s&(1<<f) == 0 {
		f++
	}
	return f
}
