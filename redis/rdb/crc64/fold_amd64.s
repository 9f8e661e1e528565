#include "textflag.h"

// NEXT moves a piece of 16 bytes on: both halves are multiplied, and the products added.
#define NEXT(piece, powers) \
	MOVO      piece, X8 \
	PCLMULQDQ $0x00, powers, piece \
	PCLMULQDQ $0x11, powers, X8 \
	PXOR      X8, piece

// ADD adds 16 bytes of b.
#define ADD(off, piece) \
	MOVOU off(SI), X9 \
	PXOR  X9, piece

// func fold(b []byte, sum uint64, folds *[4]uint64) (lo, hi uint64)
TEXT ·fold(SB), NOSPLIT, $0-56
	MOVQ  b_base+0(FP), SI
	MOVQ  b_len+8(FP), CX
	MOVQ  sum+24(FP), X4
	MOVQ  folds+32(FP), DX
	MOVOU 0(DX), X6
	MOVOU 16(DX), X7
	MOVOU 0(SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	PXOR  X4, X0

loop:
	ADDQ $64, SI
	SUBQ $64, CX
	JZ   join
	NEXT(X0, X6)
	NEXT(X1, X6)
	NEXT(X2, X6)
	NEXT(X3, X6)
	ADD(0, X0)
	ADD(16, X1)
	ADD(32, X2)
	ADD(48, X3)
	JMP  loop

join:
	NEXT(X0, X7)
	PXOR   X0, X1
	NEXT(X1, X7)
	PXOR   X1, X2
	NEXT(X2, X7)
	PXOR   X2, X3
	MOVQ   X3, lo+40(FP)
	PSRLDQ $8, X3
	MOVQ   X3, hi+48(FP)
	RET
