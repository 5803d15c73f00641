/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The 16-bit shell of the BIOS image: ROM, PCI and PnP headers, the entries that a BIOS calls, and
 * the way into the 32-bit code and back.
 *
 * All code is linked at 0. In real mode the segment registers place it, in protected mode the bases
 * of the descriptors do: both are the address of the ROM, so an offset means the same everywhere.
 * Protected mode is flat otherwise (limit 4 GiB, addresses wrap), see at() in bios.h.
 *
 * The image can be written while the firmware is in its power-on self test; afterwards it is read
 * only. What changes later lives in the memory from PMM.
 */
#include "image.h"

#define SEL_CODE32 0x08
#define SEL_DATA32 0x10
#define SEL_CODE16 0x18
#define SEL_DATA16 0x20
#define PORT_A20 0x92
#define BDA_TICKS 0x46c         /* the timer's ticks, 18.2 a second */
#define KEY_TICKS 4             /* how long Ctrl-R is waited for */
#define KEY_LOOKS 1000000       /* the same where there are no ticks */

  .code16
  .section .head, "awx"
  .globl rom_start
rom_start:
  .byte 0x55, 0xaa
rom_units:
  .byte 0                       /* mkrom.py */
  jmp init_jump
  .org 6
rom_checksum:
  .byte 0                       /* mkrom.py, and rom_seal() after each change */
init_jump:
  jmp init
  .org 0x18
  .word pcir
  .word pnp_headers

  .balign 4
pcir:
  .ascii "PCIR"
  .org pcir + 24                /* filled in by mkrom.py */

/* One header for each phy, chained by the init code; their order is what a BIOS calls instances. */
  .balign 16
  .globl pnp_headers
pnp_headers:
  .set phy, 0
  .rept PHYS
  .ascii "$PnP"
  .byte 1, 2                    /* revision, length in 16 bytes */
  .word 0, 0                    /* next header; reserved byte and checksum */
  .long 0
  .word manufacturer, products + phy * PRODUCT_BYTES
  .byte 0x01, 0x00, 0x00        /* mass storage */
  .byte 0x24                    /* may boot, may be shadowed */
  .word bcv_table + phy * 8     /* boot connection vector */
  .word 0, 0, 0, 0
  .set phy, phy + 1
  .endr

/* Written during the self test. */
  .balign 8
gdt:
  .quad 0
  .word 0xffff, 0, 0x9a00, 0x00cf   /* 32-bit code */
  .word 0xffff, 0, 0x9200, 0x00cf   /* 32-bit data */
  .word 0xffff, 0, 0x9a00, 0x0000   /* 16-bit code */
  .word 0xffff, 0, 0x9200, 0x0000   /* 16-bit data */
gdt_end:
gdt_register:
  .word gdt_end - gdt - 1
  .long 0
  .globl rom_base
rom_base:
  .long 0                       /* physical address of the image */
  .globl memory_base
memory_base:
  .long 0                       /* physical address of struct Memory */
stack_top:
  .long 0                       /* in it, as an offset from rom_base */
  .globl memory_ready
memory_ready:
  .long 0                       /* its busy mark is valid */
  .globl old_int13
old_int13:
  .long 0
  .globl bdf
bdf:
  .word 0
  .globl numbers
numbers:
  .fill PHYS, 1, NO_NUMBER      /* BIOS drive number of each phy */
manufacturer:
  .asciz "OCZ"
  .globl products
products:
  .fill PHYS * PRODUCT_BYTES, 1, 0

  .section .text, "ax"

/* ------------------------------------------------------------------------ protected mode and back */

/*
 * Calls the 32-bit function at offset %eax with %edx as its argument; its result comes in %eax.
 * Interrupts are off on return. Clobbers %ecx, %edx; flags. CALL_BUSY: a call is running below us.
 *
 * The top of the 32-bit stack: -4 busy, -8 real ss:sp, -12 real cs.
 */
call32:
  pushl %ebx
  pushl %esi
  pushl %edi
  pushl %ebp
  cli
  cld
  subw $8, %sp
  movw %sp, %bp
  sgdt (%bp)
  movl %eax, %edi
  inb $PORT_A20, %al
  movb %al, %ah
  orb $2, %al
  andb $0xfe, %al               /* bit 0 would reset the machine */
  outb %al, $PORT_A20
  pushw %ax
  movw %ss, %bx
  shll $16, %ebx
  movw %sp, %bx
  xorl %esi, %esi
  movw %cs, %si
  lgdtl %cs:gdt_register
  movl %cr0, %eax
  orb $1, %al
  movl %eax, %cr0
  ljmpl $SEL_CODE32, $enter32

  .code32
enter32:
  movw $SEL_DATA32, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl $CALL_BUSY, %eax
  movl stack_top, %ebp
  cmpl $0, memory_ready
  je 1f
  cmpl $0, -4(%ebp)
  jne leave32
1:
  movl %ebp, %esp
  pushl $1
  pushl %ebx
  pushl %esi
  movl %edx, %eax
  call *%edi
  movl $0, -4(%ebp)
  movl -8(%ebp), %ebx
  movl -12(%ebp), %esi
leave32:
  ljmpl $SEL_CODE16, $leave16

/* From 16-bit protected mode to real mode: on at `label` in segment SI, with the stack SS:SP of EBX. */
  .macro to_real label
  movw $SEL_DATA16, %cx
  movw %cx, %ds
  movw %cx, %es
  movw %cx, %ss
  movl %cr0, %ecx
  andb $0xfe, %cl
  movl %ecx, %cr0
  movl %ebx, %ecx
  shrl $16, %ecx
  movw %cx, %ss
  movzwl %bx, %esp
  pushw %si
  pushw $\label
  lretw
  .endm

  .code16
leave16:
  to_real back16
back16:
  movl %eax, %edx
  popw %ax
  movb %ah, %al
  andb $0xfe, %al
  outb %al, $PORT_A20
  movl %edx, %eax
  movw %sp, %bp
  lgdtl (%bp)
  addw $8, %sp
  popl %ebp
  popl %edi
  popl %esi
  popl %ebx
  retw

/* void yield(void): back to real mode for a moment with interrupts on. A20 stays on. */
  .code32
  .globl yield
yield:
  pushl %ebx
  pushl %esi
  pushl %edi
  pushl %ebp
  movl stack_top, %ebp
  movl -8(%ebp), %ebx
  movl -12(%ebp), %esi
  movl %esp, %edi
  ljmpl $SEL_CODE16, $yield16

  .code16
yield16:
  to_real yielding
yielding:
  sti
  nop
  nop
  cli
  cld
  lgdtl %cs:gdt_register
  movl %cr0, %eax
  orb $1, %al
  movl %eax, %cr0
  ljmpl $SEL_CODE32, $yielded

  .code32
yielded:
  movw $SEL_DATA32, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl %edi, %esp
  popl %ebp
  popl %edi
  popl %esi
  popl %ebx
  ret

/* -------------------------------------------------------------------------------------- INT 13h */

  .code16
  .globl int13_entry
int13_entry:
  testb %dl, %dl
  jns pass_on
  pushw %si
  xorw %si, %si
1:
  cmpb %dl, %cs:numbers(%si)
  je is_ours
  incw %si
  cmpw $PHYS, %si
  jb 1b
  popw %si
pass_on:
  ljmpw *%cs:old_int13

/* The order of the pushes is struct Frame in bios.h. */
is_ours:
  popw %si
  pushal
  pushw %ds
  pushw %es
  smsw %ax
  testb $1, %al                 /* virtual 8086 mode: the processor is not ours to switch */
  jnz refused
  movzwl %sp, %edx
  xorl %eax, %eax
  movw %ss, %ax
  shll $4, %eax
  addl %eax, %edx
  movl $int13, %eax
  call call32
  cmpl $CALL_BUSY, %eax
  je refused
  popw %es
  popw %ds
  popal
  iretw

refused:
  movw %sp, %bp
  movb $STATUS_NOT_READY, 33(%bp)   /* ah */
  orw $1, 40(%bp)                   /* carry */
  popw %es
  popw %ds
  popal
  iretw

/* ------------------------------------------------------------------------------- self test, boot */

  .balign 8
bcv_table:
  .set phy, 0
  .rept PHYS
  .balign 8
  pushw $phy
  jmp bcv
  .set phy, phy + 1
  .endr

bcv:
  pushal
  pushw %ds
  pushw %es
  pushfw
  movw %sp, %bp
  movzwl 38(%bp), %edx          /* the phy */
  movl $connect, %eax
  call call32
  popfw
  popw %es
  popw %ds
  popal
  addw $2, %sp
  lretw

/* From here on: gone after init. */
  .section .init.text, "ax"

/* Far call from the BIOS, %ax: bus, device, function. */
init:
  pushal
  pushw %ds
  pushw %es
  pushfw
  cld
  movw %cs, %bx
  movw %bx, %ds
  movw %ax, bdf
  xorl %eax, %eax
  movw %cs, %ax
  shll $4, %eax
  movl %eax, rom_base
  addl $gdt, %eax
  movl %eax, gdt_register + 2
  movl rom_base, %eax
  movw $gdt + 8, %si
1:
  movl %eax, %edx
  movw %dx, 2(%si)
  shrl $16, %edx
  movb %dl, 4(%si)
  addw $8, %si
  cmpw $gdt_end, %si
  jb 1b
  call allocate
  testl %eax, %eax
  movw $no_memory, %si
  jz nothing
  movl %eax, memory_base
  addl $MEMORY_BYTES, %eax
  subl rom_base, %eax
  movl %eax, stack_top
  movl $startup, %eax
  xorl %edx, %edx
  call call32
  movw %sp, %bp
  movw %ax, 34(%bp)             /* the BIOS takes it from %ax */
  movw %cs, %bx
  movw %bx, %ds
  movw $text, %si
  call print
  movw $details, %si
  call wants_details
  jne 2f
  call print
  movb $0, %ah
  int $0x16                     /* any key goes on */
2:
  movw %sp, %bp
  cmpw $0, 34(%bp)
  jne init_end
  call release                  /* nothing to boot from */
  movb $0, rom_units
init_end:
  popfw
  popw %es
  popw %ds
  popal
  lretw

/* Without memory there is no 32-bit code: the ROM leaves by itself. */
nothing:
  call print
  movb $0, rom_units
  jmp init_end

/* Equal: Ctrl-R came before the details' time was over (and is taken). Keeps %si. */
wants_details:
  pushw %es
  xorw %ax, %ax
  movw %ax, %es
  movw %es:BDA_TICKS, %dx
  movl $KEY_LOOKS, %ecx
  sti                           /* a BIOS may read the keyboard, or a serial port, by the timer */
1:
  movb $1, %ah
  int $0x16
  jnz 2f
  movw %es:BDA_TICKS, %ax
  subw %dx, %ax
  cmpw $KEY_TICKS, %ax
  jae 3f
  decl %ecx
  jnz 1b
3:
  orb $1, %cl                   /* not equal */
  popw %es
  retw
2:
  cmpb $KEY_DETAILS, %al
  jne 4f
  movb $0, %ah
  int $0x16
  cmpb %al, %al
4:
  popw %es
  retw

/* Prints the text at offset %si. */
print:
  movb %cs:(%si), %al
  incw %si
  testb %al, %al
  jz 1f
  movb $0x0e, %ah
  movw $0x0007, %bx
  pushw %si
  int $0x10
  popw %si
  jmp print
1:
  retw

/* MEMORY_BYTES from PMM: extended memory, permanent, aligned. Address in %eax, 0: none. */
allocate:
  call find_pmm
  jne 1f
  pushw $0x000e                 /* extended, aligned, permanent */
  pushl $0xffffffff             /* no handle */
  pushl $MEMORY_BYTES / 16
  pushw $0                      /* allocate */
  lcallw *%es:7
  addw $12, %sp
  shll $16, %edx
  movw %ax, %dx
  movl %edx, %eax
  retw
1:
  xorl %eax, %eax
  retw

release:
  call find_pmm
  jne 1f
  pushl memory_base
  pushw $2                      /* deallocate */
  lcallw *%es:7
  addw $6, %sp
1:
  retw

/* Equal: %es:0 is the header of PMM. */
find_pmm:
  movw $0xe000, %bx
1:
  movw %bx, %es
  cmpl $0x4d4d5024, %es:0       /* "$PMM" */
  jne 2f
  call pmm_checksum
  je 3f
2:
  incw %bx
  jnz 1b
  orb $1, %bl                   /* not equal */
3:
  retw

/* Equal: the bytes of the structure at %es:0 sum up to 0. */
pmm_checksum:
  xorw %si, %si
  movzbw %es:5, %cx
  xorb %al, %al
1:
  addb %es:(%si), %al
  incw %si
  loop 1b
  testb %al, %al
  retw

no_memory:
  .asciz "OCZ RevoDrive BIOS: no memory from the BIOS (PMM), its drives are not available\r\n"

  .section .note.GNU-stack, "", @progbits
