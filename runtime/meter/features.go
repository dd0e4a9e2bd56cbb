package meter

// The features that are refused by name.
const (
	featureThreads       = "threads"
	featureMemory64      = "memory64"
	featureMultiMemory   = "multi-memory"
	featureExceptions    = "exception handling"
	featureGC            = "garbage collection"
	featureFuncRefs      = "function references"
	featureRelaxedSIMD   = "relaxed SIMD"
	featurePageSizes     = "custom page sizes"
	featureStringref     = "stringref"
	featureStackSwitch   = "stack switching"
	featureWideArith     = "wide arithmetic"
	featureMemoryControl = "memory control"
)

// unsupported records that the module uses a feature which is not accepted.
func (r *reader) unsupported(at int, feature string) {
	r.fail(ErrUnsupported, at, "%s: build the module without it", feature)
}

// foreignTypes are the value types of features that are not accepted, as they
// stand in place of a value type.
var foreignTypes = map[byte]string{
	0x64: featureFuncRefs, // (ref ht)
	0x63: featureFuncRefs, // (ref null ht)
	0x6e: featureGC,       // anyref
	0x6d: featureGC,       // eqref
	0x6c: featureGC,       // i31ref
	0x6b: featureGC,       // structref
	0x6a: featureGC,       // arrayref
	0x71: featureGC,       // nullref
	0x72: featureGC,       // nullexternref
	0x73: featureGC,       // nullfuncref
	0x69: featureExceptions,
	0x74: featureExceptions,
	0x67: featureStringref,
	0x66: featureStringref,
	0x62: featureStringref,
	0x61: featureStringref,
	0x68: featureStackSwitch,
	0x75: featureStackSwitch,
}

// foreignForms are the type definitions of features that are not accepted.
var foreignForms = map[byte]string{
	0x4e: featureGC, // rec
	0x4f: featureGC, // sub final
	0x50: featureGC, // sub
	0x5e: featureGC, // array
	0x5f: featureGC, // struct
	0x5d: featureStackSwitch,
}

// valueType reads a value type.
func (r *reader) valueType() ValueType {
	start := r.pos
	t := ValueType(r.byte("a value type"))
	if r.err == nil {
		r.checkValueType(start, t)
	}
	return t
}

func (r *reader) checkValueType(at int, t ValueType) {
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return
	}
	if feature := foreignTypes[byte(t)]; feature != "" {
		r.unsupported(at, feature)
		return
	}
	r.fail(ErrMalformed, at, "unknown value type %#x", byte(t))
}

// refType reads the type of a reference.
func (r *reader) refType() ValueType {
	start := r.pos
	t := r.valueType()
	if r.err == nil && !t.isRef() {
		r.fail(ErrMalformed, start, "%s is not a reference type", t)
	}
	return t
}
