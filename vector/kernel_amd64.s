//go:build !purego

#include "textflag.h"

// func dotRowsSIMD(dst *int32, query *int16, rows *int8, n, width int)
//
// Rows are widened to 16 bits and multiplied with the query in pairs
// (VPMADDWD), 32 components a turn into two sums.
TEXT ·dotRowsSIMD(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ query+8(FP), SI
	MOVQ rows+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ width+32(FP), R8

row:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	MOVQ  SI, R9
	MOVQ  R8, R10

part:
	VPMOVSXBW  (DX), Y2
	VPMOVSXBW  16(DX), Y3
	VPMADDWD   (R9), Y2, Y2
	VPMADDWD   32(R9), Y3, Y3
	VPADDD     Y2, Y0, Y0
	VPADDD     Y3, Y1, Y1
	PREFETCHT0 2048(DX)
	ADDQ       $32, DX
	ADDQ       $64, R9
	SUBQ       $32, R10
	JNZ        part

	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (DI)
	ADDQ         $4, DI
	DECQ         CX
	JNZ          row
	VZEROUPPER
	RET
