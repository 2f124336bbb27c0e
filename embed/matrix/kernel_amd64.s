//go:build !purego

#include "textflag.h"

// One row of b times a column of a: 24 columns into the sums of four rows.
#define STEP(ob, oa) \
	VMOVUPS      ob(BX), Y12     \
	VMOVUPS      (ob+32)(BX), Y13 \
	VMOVUPS      (ob+64)(BX), Y14 \
	VBROADCASTSS oa(R8), Y15     \
	VFMADD231PS  Y12, Y15, Y0    \
	VFMADD231PS  Y13, Y15, Y1    \
	VFMADD231PS  Y14, Y15, Y2    \
	VBROADCASTSS oa(R9), Y15     \
	VFMADD231PS  Y12, Y15, Y3    \
	VFMADD231PS  Y13, Y15, Y4    \
	VFMADD231PS  Y14, Y15, Y5    \
	VBROADCASTSS oa(R10), Y15    \
	VFMADD231PS  Y12, Y15, Y6    \
	VFMADD231PS  Y13, Y15, Y7    \
	VFMADD231PS  Y14, Y15, Y8    \
	VBROADCASTSS oa(R11), Y15    \
	VFMADD231PS  Y12, Y15, Y9    \
	VFMADD231PS  Y13, Y15, Y10   \
	VFMADD231PS  Y14, Y15, Y11

// func kernelSIMD(depth int, a *float32, lda int, b, bias, c *float32, ldc int)
TEXT ·kernelSIMD(SB), NOSPLIT, $0-56
	MOVQ depth+0(FP), CX
	MOVQ a+8(FP), R8
	MOVQ lda+16(FP), DX
	MOVQ b+24(FP), BX
	MOVQ bias+32(FP), SI
	MOVQ c+40(FP), DI
	MOVQ ldc+48(FP), R12
	LEAQ (R8)(DX*4), R9
	LEAQ (R9)(DX*4), R10
	LEAQ (R10)(DX*4), R11

	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVAPS Y0, Y3
	VMOVAPS Y1, Y4
	VMOVAPS Y2, Y5
	VMOVAPS Y0, Y6
	VMOVAPS Y1, Y7
	VMOVAPS Y2, Y8
	VMOVAPS Y0, Y9
	VMOVAPS Y1, Y10
	VMOVAPS Y2, Y11

	SUBQ $4, CX
	JLT  rest

four:
	STEP(0, 0)
	STEP(96, 4)
	STEP(192, 8)
	STEP(288, 12)
	ADDQ $384, BX
	ADDQ $16, R8
	ADDQ $16, R9
	ADDQ $16, R10
	ADDQ $16, R11
	SUBQ $4, CX
	JGE  four

rest:
	ADDQ $4, CX
	JZ   done

one:
	STEP(0, 0)
	ADDQ $96, BX
	ADDQ $4, R8
	ADDQ $4, R9
	ADDQ $4, R10
	ADDQ $4, R11
	DECQ CX
	JNZ  one

done:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	LEAQ    (DI)(R12*4), DI
	VMOVUPS Y3, (DI)
	VMOVUPS Y4, 32(DI)
	VMOVUPS Y5, 64(DI)
	LEAQ    (DI)(R12*4), DI
	VMOVUPS Y6, (DI)
	VMOVUPS Y7, 32(DI)
	VMOVUPS Y8, 64(DI)
	LEAQ    (DI)(R12*4), DI
	VMOVUPS Y9, (DI)
	VMOVUPS Y10, 32(DI)
	VMOVUPS Y11, 64(DI)
	VZEROUPPER
	RET

// The coefficients stand in gelu.go, eight times each.

// func geluSIMD(x *float32, n int)
//
// The erf of gelu.go, eight values at once.
TEXT ·geluSIMD(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	LEAQ ·erfTable(SB), SI

eight:
	VMOVUPS (DI), Y0
	VMULPS  (SI), Y0, Y1   // x/√2
	VMINPS  32(SI), Y1, Y1 // within ±4
	VMAXPS  64(SI), Y1, Y1
	VMULPS  Y1, Y1, Y2     // square

	VMOVUPS     96(SI), Y3
	VFMADD213PS 128(SI), Y2, Y3
	VFMADD213PS 160(SI), Y2, Y3
	VFMADD213PS 192(SI), Y2, Y3
	VFMADD213PS 224(SI), Y2, Y3
	VFMADD213PS 256(SI), Y2, Y3
	VFMADD213PS 288(SI), Y2, Y3
	VMULPS      Y1, Y3, Y3

	VMOVUPS     320(SI), Y4
	VFMADD213PS 352(SI), Y2, Y4
	VFMADD213PS 384(SI), Y2, Y4
	VFMADD213PS 416(SI), Y2, Y4
	VFMADD213PS 448(SI), Y2, Y4

	VDIVPS      Y4, Y3, Y3     // erf
	VMULPS      480(SI), Y0, Y0 // x/2
	VFMADD213PS Y0, Y0, Y3     // erf·x/2 + x/2
	VMOVUPS     Y3, (DI)
	ADDQ        $32, DI
	SUBQ        $8, CX
	JNZ         eight
	VZEROUPPER
	RET
