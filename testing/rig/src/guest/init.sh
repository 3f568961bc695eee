#!/bin/busybox sh
# Init process of a guest: loads the drivers, then executes commands of the host.
# A command is one line, `ID COMMAND`. The response is its output between
# `BEGIN ID` and `END ID CODE`.
/bin/busybox mkdir -p /proc /sys /dev /tmp /run
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/usr/sbin:/sbin
while read -r module; do
    insmod "/modules/$module" || echo "cannot load $module" >/dev/console
done </modules/list
# With a root file system on a disk, the same script continues from there.
root=$(sed -n 's/.*root=\([^ ]*\).*/\1/p' /proc/cmdline)
if [ -n "$root" ] && [ ! -e /on-disk ]; then
    for module in $(cat /modules/virtio_blk.needs) virtio_blk.ko; do
        insmod "/modules/$module" 2>/dev/null
    done
    mount -t ext4 "$root" /root || echo "cannot mount $root" >/dev/console
    exec switch_root /root /init
fi
ip link set lo up
line=$(sed -n 's/.*line=\([^ ]*\).*/\1/p' /proc/cmdline)
line=/dev/${line:-ttyS1}
stty -F "$line" raw -echo
exec <"$line" >"$line"
echo READY
# If a child ends while a shell reads a line, the shell loses the part that it has read.
# Orphaned processes become children of the init process, so a subshell reads the commands.
(
    while read -r id command; do
        [ -n "$id" ] || continue
        if [ "$command" = "a shell" ]; then
            # Sent first, because output that is in flight when the line is released is lost.
            echo "BEGIN $id"
            echo "END $id 0"
            stty sane
            PS1='guest # ' setsid sh -c "exec sh -i <$line >$line 2>&1"
            stty raw -echo
            continue
        fi
        sh -c "$command" </dev/null >/tmp/output 2>&1
        code=$?
        echo "BEGIN $id"
        cat /tmp/output
        echo
        echo "END $id $code"
    done
)
poweroff -f
