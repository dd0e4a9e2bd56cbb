package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/weir-mcp/weir/abi"
)

// Record is what a sink answers. The zero value is none: a handler that returns
// it has failed. Records are values; the methods return a changed copy.
type Record struct {
	given    bool
	recorded bool
	metrics  []metric
	info     json.RawMessage
}

type metric struct {
	name  string
	value float64
}

// Recorded says that the sink took note of the operation.
func Recorded() Record { return Record{given: true, recorded: true} }

// NotRecorded says that the operation was of no interest to the sink.
func NotRecorded() Record { return Record{given: true} }

// Metric attaches a number to the record. A second one of the same name takes
// the first one's place. It must be finite.
func (r Record) Metric(name string, value float64) Record {
	r.metrics = slices.Clone(r.metrics)
	if i := slices.IndexFunc(r.metrics, func(m metric) bool { return m.name == name }); i >= 0 {
		r.metrics[i].value = value
	} else {
		r.metrics = append(r.metrics, metric{name, value})
	}
	return r
}

// WithInfo attaches any JSON value, for the invoker's records.
func (r Record) WithInfo(info json.RawMessage) Record {
	r.info = info
	return r
}

func (r Record) result() (abi.Result, error) {
	if !r.given {
		return abi.Result{}, errors.New("the handler returned no record")
	}
	out := abi.Result{Recorded: r.recorded, Info: r.info}
	if len(r.metrics) == 0 {
		return out, nil
	}
	b := []byte{'{'}
	for i, m := range r.metrics {
		if math.IsNaN(m.value) || math.IsInf(m.value, 0) {
			return abi.Result{}, fmt.Errorf("metric %q is not a finite number", m.name)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendText(b, m.name), ':')
		b = strconv.AppendFloat(b, m.value, 'f', -1, 64)
	}
	out.Metrics = append(b, '}')
	return out, nil
}
