/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A guest that is its own firmware: the last 64 KiB below 4 GiB, which the CPU starts in. It writes to
 * each word from 1 to 16 MiB that word's address, and then for ever adds one to the first word of each
 * page from 1 to 4 MiB, in turn.
 */
	.set	BASE, 0xffff0000
	.set	FROM, 0x100000
	.set	COUNTERS_END, 0x400000
	.set	END, 0x1000000

	.code16
start:	cli
	lgdtl	%cs:gdtr - start
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmpl	$8, $BASE + protected - start

	.code32
protected:
	mov	$16, %ax
	mov	%ax, %ds
	mov	$FROM, %edi
1:	mov	%edi, (%edi)
	add	$4, %edi
	cmp	$END, %edi
	jb	1b
2:	mov	$FROM, %edi
3:	incl	(%edi)
	add	$0x1000, %edi
	cmp	$COUNTERS_END, %edi
	jb	3b
	jmp	2b

	/* Code and data segments of 4 GiB. */
	.balign	8
gdt:	.quad	0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdtr:	.word	23
	.long	BASE + gdt - start

	/* The CPU's first instruction. */
	.org	0xfff0
	.code16
	jmp	start
	.org	0x10000
