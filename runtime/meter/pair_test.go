package meter_test

import (
	"testing"
	"time"
)

// pair measures two ways to do the same, in turn, and reports the fastest run of
// each and their ratio: on a shared machine the only figures worth comparing.
func pair(b *testing.B, name string, plain, metered []byte, prepare func(binary []byte) (run func())) {
	b.Run(name, func(b *testing.B) {
		runs := []func(){prepare(plain), prepare(metered)}
		fastest := []time.Duration{1 << 62, 1 << 62}
		for range 3 { // warm
			runs[0]()
			runs[1]()
		}
		for b.Loop() {
			for i, run := range runs {
				start := time.Now()
				run()
				fastest[i] = min(fastest[i], time.Since(start))
			}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(fastest[0].Nanoseconds()), "plain-ns")
		b.ReportMetric(float64(fastest[1].Nanoseconds()), "metered-ns")
		b.ReportMetric(float64(fastest[1])/float64(fastest[0]), "ratio")
	})
}
