/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Runs commands in the guest for the host harness, several at a time, over one serial port in raw
 * mode.
 *
 * Usage: agent TTY.  It ends (status 0) when the host says BYE; the caller then powers the guest
 * off.
 *
 * Every message is one header line, then as many bytes as it says:
 *
 *   host -> guest
 *     RUN <id> <command bytes> <stdin bytes>\n <command> <stdin>
 *     KILL <id>\n            SIGKILL to the command's process group
 *     PING <id>\n            answered by PONG <id>, for the host to find a message border again
 *     BYE\n
 *   guest -> host
 *     HELLO 1\n              once, when the agent is ready
 *     OUT <id> <n>\n <n bytes>   standard output, as it comes
 *     ERR <id> <n>\n <n bytes>   standard error
 *     END <id> <status>\n    both are closed and the command has ended; 128 + n for signal n
 *     PONG <id>\n
 *
 * A message that makes no sense is answered by BAD <text>\n and skipped. The command runs under
 * /bin/sh -c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { kMaxJobs = 16, kMaxLine = 128, kMaxPayload = 64 << 20, kChunk = 2048 };

struct job {
  long id;
  pid_t pid;  /* 0: free slot */
  int fds[2]; /* read ends of stdout and stderr, -1 when closed */
};

static struct job jobs[kMaxJobs];
static int tty;

static void fail(const char *what) {
  fprintf(stderr, "agent: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void send_bytes(const char *data, size_t size) {
  while (size) {
    ssize_t done = write(tty, data, size);
    if (done < 0 && errno != EINTR) {
      fail("write");
    }
    if (done > 0) {
      data += done;
      size -= done;
    }
  }
}

static void __attribute__((format(printf, 1, 2))) send_line(const char *format, ...) {
  char line[kMaxLine];
  va_list args;
  va_start(args, format);
  int size = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  send_bytes(line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
}

static void receive(char *data, size_t size) {
  while (size) {
    ssize_t done = read(tty, data, size);
    if (done < 0 && errno != EINTR) {
      fail("read");
    }
    if (done > 0) {
      data += done;
      size -= done;
    }
  }
}

static bool receive_line(char *line) {
  for (int used = 0; used < kMaxLine; used++) {
    receive(line + used, 1);
    if (line[used] == '\n') {
      line[used] = 0;
      return true;
    }
  }
  return false;
}

static void open_tty(const char *path) {
  struct termios mode;
  tty = open(path, O_RDWR | O_NOCTTY);
  if (tty < 0 || tcgetattr(tty, &mode)) {
    fail(path);
  }
  cfmakeraw(&mode);
  mode.c_cflag |= CLOCAL | CREAD;
  cfsetspeed(&mode, B115200);
  if (tcsetattr(tty, TCSANOW, &mode)) {
    fail(path);
  }
  fcntl(tty, F_SETFD, FD_CLOEXEC);
}

static struct job *find_job(long id) {
  for (int i = 0; i < kMaxJobs; i++) {
    if (jobs[i].pid && jobs[i].id == id) {
      return &jobs[i];
    }
  }
  return NULL;
}

static struct job *free_slot(void) {
  for (int i = 0; i < kMaxJobs; i++) {
    if (!jobs[i].pid) {
      return &jobs[i];
    }
  }
  return NULL;
}

static void run_child(const char *command, int in, const int out[2], const int err[2]) {
  setsid();
  dup2(in, 0);
  dup2(out[1], 1);
  dup2(err[1], 2);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  fail("/bin/sh");
}

/* Commands may be left running: what they inherit must not hold the pipes of a later one. */
static void start_job(long id, const char *command, int in) {
  int out[2], err[2];
  struct job *job = free_slot();
  if (!job || find_job(id)) {
    send_line("BAD %ld: %s\n", id, job ? "this id is in use" : "too many commands at once");
    return;
  }
  if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
    fail("pipe");
  }
  pid_t pid = fork();
  if (pid < 0) {
    fail("fork");
  }
  if (!pid) {
    run_child(command, in, out, err);
  }
  close(out[1]);
  close(err[1]);
  *job = (struct job){.id = id, .pid = pid, .fds = {out[0], err[0]}};
}

static void handle_run(long id, size_t command_size, size_t input_size) {
  char *command = malloc(command_size + 1);
  char *input = malloc(input_size + 1);
  int in = memfd_create("stdin", MFD_CLOEXEC);
  if (!command || !input || in < 0) {
    fail("memory for a command");
  }
  receive(command, command_size);
  command[command_size] = 0;
  receive(input, input_size);
  for (size_t done = 0; done < input_size;) {
    ssize_t wrote = write(in, input + done, input_size - done);
    if (wrote < 0) {
      fail("memory for a command's input");
    }
    done += wrote;
  }
  lseek(in, 0, SEEK_SET);
  start_job(id, command, in);
  close(in);
  free(command);
  free(input);
}

/* False when the host said goodbye. */
static bool handle_message(void) {
  char line[kMaxLine];
  long id;
  unsigned long command_size, input_size;
  if (!receive_line(line)) {
    send_line("BAD header too long\n");
    return true;
  }
  if (!strcmp(line, "BYE")) {
    return false;
  }
  if (sscanf(line, "RUN %ld %lu %lu", &id, &command_size, &input_size) == 3 &&
      command_size <= kMaxPayload && input_size <= kMaxPayload) {
    handle_run(id, command_size, input_size);
  } else if (sscanf(line, "KILL %ld", &id) == 1) {
    struct job *job = find_job(id);
    if (job) {
      kill(-job->pid, SIGKILL);
    }
  } else if (sscanf(line, "PING %ld", &id) == 1) {
    send_line("PONG %ld\n", id);
  } else if (line[0]) {
    send_line("BAD %.60s\n", line);
  }
  return true;
}

static void pass_output(struct job *job, int which) {
  char data[kChunk];
  ssize_t size = read(job->fds[which], data, sizeof data);
  if (size > 0) {
    send_line("%s %ld %zd\n", which ? "ERR" : "OUT", job->id, size);
    send_bytes(data, size);
  } else if (size == 0 || errno != EINTR) {
    close(job->fds[which]);
    job->fds[which] = -1;
  }
}

static void end_job(struct job *job) {
  int status;
  if (waitpid(job->pid, &status, 0) != job->pid) {
    return;
  }
  send_line("END %ld %d\n", job->id,
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  job->pid = 0;
}

static void serve_jobs(struct pollfd *polled) {
  for (int i = 0; i < kMaxJobs; i++) {
    for (int which = 0; which < 2; which++) {
      if (jobs[i].pid && polled[1 + 2 * i + which].revents) {
        pass_output(&jobs[i], which);
      }
    }
    if (jobs[i].pid && jobs[i].fds[0] < 0 && jobs[i].fds[1] < 0) {
      end_job(&jobs[i]);
    }
  }
}

int main(int argc, char **argv) {
  struct pollfd polled[1 + 2 * kMaxJobs];
  if (argc != 2) {
    fprintf(stderr, "usage: agent TTY\n");
    return 2;
  }
  open_tty(argv[1]);
  send_line("\nHELLO 1\n");
  for (;;) {
    polled[0] = (struct pollfd){.fd = tty, .events = POLLIN};
    for (int i = 0; i < kMaxJobs; i++) {
      for (int which = 0; which < 2; which++) {
        int fd = jobs[i].pid ? jobs[i].fds[which] : -1;
        polled[1 + 2 * i + which] = (struct pollfd){.fd = fd, .events = POLLIN};
      }
    }
    if (poll(polled, 1 + 2 * kMaxJobs, -1) < 0) {
      continue;
    }
    serve_jobs(polled);
    if ((polled[0].revents & POLLIN) && !handle_message()) {
      return 0;
    }
  }
}
