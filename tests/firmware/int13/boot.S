/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Boot sector of the INT 13h test: loads the rest of the program behind itself and calls it. All of
 * it runs in real mode below 64 KiB, with all segment registers 0.
 */
  .code16
  .section .boot, "ax"
  .globl _start
_start:
  ljmpw $0, $1f
1:
  cli
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl $0x7c00, %esp
  sti
  cld
  movb %dl, boot_drive
  movw $packet, %si
  movb $0x42, %ah
  int $0x13
  jc 2f
  movzbl boot_drive, %eax
  calll run_checks
2:
  movb $'!', %al
  movw $0x3f8, %dx
  outb %al, %dx
  movb $0x7f, %al
  movw $0xf4, %dx               /* isa-debug-exit */
  outb %al, %dx
3:
  hlt
  jmp 3b

packet:
  .word 16, load_sectors, 0x7e00, 0
  .quad 1
  .globl boot_drive
boot_drive:
  .byte 0

  .org 510
  .word 0xaa55

/* void call_int13(void): with the registers of `frame`, which takes those that come back. */
  .section .text, "ax"
  .globl call_int13
call_int13:
  pushl %ebx
  pushl %esi
  pushl %edi
  pushl %ebp
  pushfl
  movl frame, %eax
  movl frame + 4, %ebx
  movl frame + 8, %ecx
  movl frame + 12, %edx
  movl frame + 16, %esi
  movl frame + 20, %edi
  movl frame + 24, %ebp
  movw frame + 30, %es
  pushw frame + 32
  popfw
  movw frame + 28, %ds
  int $0x13
  movl %eax, %cs:frame
  pushfw
  popw %cs:frame + 32
  movw %ds, %cs:frame + 28
  xorw %ax, %ax
  movw %ax, %ds
  movw %es, frame + 30
  movw %ax, %es
  movl %ebx, frame + 4
  movl %ecx, frame + 8
  movl %edx, frame + 12
  movl %esi, frame + 16
  movl %edi, frame + 20
  movl %ebp, frame + 24
  popfl
  popl %ebp
  popl %edi
  popl %esi
  popl %ebx
  retl

  .section .note.GNU-stack, "", @progbits
