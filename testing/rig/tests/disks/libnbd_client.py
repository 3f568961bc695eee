"""Does to a disk what is asked for on standard input, over libnbd, and connects again when its
server has died: `write OFFSET LENGTH BYTE`, `zero OFFSET LENGTH`, `trim OFFSET LENGTH`,
`read OFFSET LENGTH BYTE`, `flush`. Each answer is the request and `done`, or what is wrong."""

import sys
import time

import nbd


def connect(uri):
    while True:
        handle = nbd.NBD()
        try:
            handle.connect_uri(uri)
            return handle
        except nbd.Error:
            time.sleep(0.02)


def carry_out(handle, verb, numbers):
    if verb == "flush":
        handle.flush()
        return "done"
    offset, length, *byte = numbers
    if verb == "write":
        handle.pwrite(bytes(byte) * length, offset)
    elif verb == "zero":
        handle.zero(length, offset)
    elif verb == "trim":
        handle.trim(length, offset)
    elif handle.pread(length, offset) != bytes(byte) * length:
        return "differs"
    return "done"


def main():
    handle = connect(sys.argv[1])
    for line in sys.stdin:
        verb, *numbers = line.split()
        numbers = [int(number) for number in numbers]
        while True:
            try:
                answer = carry_out(handle, verb, numbers)
                break
            except nbd.Error as error:
                # If the connection still exists, the server has rejected the request.
                if handle.aio_is_ready():
                    answer = f"failed: {error}"
                    break
                handle = connect(sys.argv[1])
        print(line.strip(), answer, flush=True)


main()
