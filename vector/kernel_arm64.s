//go:build !purego

#include "textflag.h"

// func dotRowsSIMD(dst *int32, query *int16, rows *int8, n, width int)
//
// Rows are widened to 16 bits and multiplied and added to 32-bit sums, 32
// components a turn into four sums. The assembler has no names for the signed
// widening instructions: they are spelt out.
TEXT ·dotRowsSIMD(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD query+8(FP), R1
	MOVD rows+16(FP), R2
	MOVD n+24(FP), R3
	MOVD width+32(FP), R4

row:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	MOVD R1, R5
	MOVD R4, R6

part:
	VLD1.P 32(R2), [V16.B16, V17.B16]
	VLD1.P 64(R5), [V0.H8, V1.H8, V2.H8, V3.H8]
	WORD $0x0F08A614   // SSHLL V16.B8, V20.H8
	WORD $0x4F08A615   // SSHLL2 V16.B16, V21.H8
	WORD $0x0F08A636   // SSHLL V17.B8, V22.H8
	WORD $0x4F08A637   // SSHLL2 V17.B16, V23.H8
	WORD $0x0E748004   // SMLAL V0.H4, V20.H4, V4.S4
	WORD $0x4E748005   // SMLAL2 V0.H8, V20.H8, V5.S4
	WORD $0x0E758026   // SMLAL V1.H4, V21.H4, V6.S4
	WORD $0x4E758027   // SMLAL2 V1.H8, V21.H8, V7.S4
	WORD $0x0E768044   // SMLAL V2.H4, V22.H4, V4.S4
	WORD $0x4E768045   // SMLAL2 V2.H8, V22.H8, V5.S4
	WORD $0x0E778066   // SMLAL V3.H4, V23.H4, V6.S4
	WORD $0x4E778067   // SMLAL2 V3.H8, V23.H8, V7.S4
	SUBS   $32, R6, R6
	BNE    part

	VADD  V5.S4, V4.S4, V4.S4
	VADD  V7.S4, V6.S4, V6.S4
	VADD  V6.S4, V4.S4, V4.S4
	VADDV V4.S4, V4
	VMOV  V4.S[0], R7
	MOVW.P R7, 4(R0)
	SUBS  $1, R3, R3
	BNE   row
	RET
