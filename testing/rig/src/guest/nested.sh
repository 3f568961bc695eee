#!/bin/busybox sh
# The only process of a VM in a machine with an adapter: has an address, serves iperf3, and
# says from time to time what it has.
/bin/busybox mkdir -p /proc /sys /dev /tmp /run
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/usr/sbin:/sbin
while read -r module; do
    # It hosts no VMs itself.
    case $module in
    kvm* | ccp*) continue ;;
    esac
    insmod "/modules/$module"
done </modules/list
ip link set lo up
# The pair of the NIC and of what it stands by for comes first.
ip link set eth0 up
ip addr add 10.77.0.1/24 dev eth0
iperf3 -s -D
echo NESTED-READY
while true; do
    for device in eth0 eth1 eth2; do
        statistics=/sys/class/net/$device/statistics
        [ ! -e "$statistics" ] ||
            echo "$device rx $(cat $statistics/rx_packets) tx $(cat $statistics/tx_packets)"
    done
    sleep 2
done
