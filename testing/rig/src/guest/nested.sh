#!/bin/busybox sh
# Init process of a VM on a machine with an SR-IOV adapter: sets an address, serves iperf3, and
# periodically prints the counters of its NICs.
/bin/busybox mkdir -p /proc /sys /dev /tmp /run
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/usr/sbin:/sbin
while read -r module; do
    # The VM hosts no VMs itself.
    case $module in
    kvm* | ccp*) continue ;;
    esac
    insmod "/modules/$module"
done </modules/list
ip link set lo up
# The first device is the failover master of the NIC and its VF.
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
