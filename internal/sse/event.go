package sse

// Event is one event, or one comment, of a stream.
type Event struct {
	// IsComment says that this is a comment and nothing but Comment counts. It
	// is what stands behind the colon, white space included.
	IsComment bool
	Comment   string

	// Name is the event field, empty when there was none or an empty one: a
	// reader takes that for "message".
	Name string
	// ID is the id field. HasID tells an empty one, which makes the reader forget
	// the last id, from none.
	ID    string
	HasID bool
	// Retry is the retry field as spelled, digits only, empty when there is none.
	// A reader takes it for milliseconds.
	Retry string
	// Data are the data fields, joined by LF. HasData tells an empty one from
	// none. They belong to the caller.
	Data    []byte
	HasData bool
}

// empty says that there is no field.
func (e *Event) empty() bool {
	return e.Name == "" && !e.HasID && e.Retry == "" && !e.HasData
}

// Limits bound what a [Reader] keeps. A zero member means its default.
type Limits struct {
	// Data is how many bytes the data of one event may have. Default 16 MiB.
	Data int
	// Line is how many bytes a line may have that is no data: a comment, or a
	// field with its name. Default 64 KiB.
	Line int
	// ID is how many bytes an id may have. Default 1 KiB.
	ID int
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		n   *int
		def int
	}{{&l.Data, 16 << 20}, {&l.Line, 64 << 10}, {&l.ID, 1 << 10}} {
		if *d.n <= 0 {
			*d.n = d.def
		}
	}
	return l
}
