package meter

import (
	"encoding/binary"
	"strconv"
)

// appendSigned writes a signed LEB128.
func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		if v >>= 7; v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendLimits(b []byte, l Limits) []byte {
	if !l.HasMax {
		return binary.AppendUvarint(append(b, 0), uint64(l.Min))
	}
	return binary.AppendUvarint(binary.AppendUvarint(append(b, 1), uint64(l.Min)), uint64(l.Max))
}

func appendFuncType(b []byte, t FuncType) []byte {
	b = append(b, 0x60)
	for _, types := range [][]ValueType{t.Params, t.Results} {
		b = binary.AppendUvarint(b, uint64(len(types)))
		for _, v := range types {
			b = append(b, byte(v))
		}
	}
	return b
}

// appendOp writes an instruction with an unsigned immediate.
func appendOp(b []byte, op opcode, immediate uint32) []byte {
	return binary.AppendUvarint(append(b, byte(op)), uint64(immediate))
}

// quote makes a name of a module printable.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most]
	}
	return strconv.Quote(s)
}
