package capture

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// maxPorts bounds the ports of a filter: jumps reach 255 instructions.
const maxPorts = 32

// networkHeader is SKF_NET_OFF: offsets relative to the network header, whatever link header stands before it.
const networkHeader = 0xfff00000

// portFilter makes a socket filter that passes TCP segments from or to one of the ports, over IPv4 and IPv6, with a VLAN tag
// present in the frame or taken out by the device, on any kind of link. TCP fragments and IPv6 packets with extension headers pass
// too: the decoder counts the first and looks into the second.
func portFilter(ports []uint16) ([]bpf.RawInstruction, error) {
	if len(ports) > maxPorts {
		return nil, fmt.Errorf("%d ports; at most %d can be captured at once", len(ports), maxPorts)
	}
	tail := portTests(ports)
	var program []bpf.Instruction
	// The protocol behind the link header, then the same tests for an untagged and a tagged packet.
	plain := append(ipTests(0, len(ports) > 0), tail...)
	tagged := append(ipTests(4, len(ports) > 0), tail...)
	const vlan, qinq = 0x8100, 0x88A8
	program = append(
		program,
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: vlan, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: qinq, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(plain))},
	)
	program = append(program, plain...)
	program = append(program, tagged...)
	return bpf.Assemble(program)
}

const (
	acceptBytes = 1 << 18
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// ipTests look at the IP header at the given offset behind the network header. They end in an accept or a drop, or run on into the port
// tests with X = the offset of the TCP header.
func ipTests(offset uint32, ports bool) []bpf.Instruction {
	base := networkHeader + offset
	accept, drop := bpf.RetConstant{Val: acceptBytes}, bpf.RetConstant{Val: 0}
	four := []bpf.Instruction{
		bpf.LoadAbsolute{Off: base + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoTCP, SkipTrue: 1},
		drop,
		bpf.LoadAbsolute{Off: base + 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: 0x1fff, SkipTrue: 1},
		accept,
		bpf.LoadAbsolute{Off: base, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x0f},
		bpf.ALUOpConstant{Op: bpf.ALUOpMul, Val: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: offset},
		bpf.TAX{},
	}
	six := []bpf.Instruction{
		bpf.LoadAbsolute{Off: base + 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoTCP, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoUDP, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoICMPv6, SkipTrue: 1},
		// Extension headers are rare; the decoder follows them.
		accept,
		drop,
		bpf.LoadConstant{Dst: bpf.RegX, Val: offset + 40},
		bpf.Jump{Skip: uint32(len(four))},
	}
	if !ports {
		six[len(six)-1] = accept
		four = append(four, accept)
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: base, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipTrue: uint8(len(six) + 2)},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipTrue: 1},
		drop,
	}
	program = append(program, six...)
	return append(program, four...)
}

// portTests compare both ports of the TCP header at X with the list; none means that the tests before have decided.
func portTests(ports []uint16) []bpf.Instruction {
	if len(ports) == 0 {
		return nil
	}
	var program []bpf.Instruction
	for side := range uint32(2) {
		program = append(program, bpf.LoadIndirect{Off: networkHeader + 2*side, Size: 2})
		for _, p := range ports {
			program = append(
				program,
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(p), SkipTrue: 1},
				bpf.RetConstant{Val: acceptBytes},
			)
		}
	}
	return append(program, bpf.RetConstant{Val: 0})
}
