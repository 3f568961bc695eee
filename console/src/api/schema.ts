// Made from contract/openapi.json by `npm run types`.

export interface paths {
    "/1.0": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the status of the host: version, number of objects, drain state and confinement. */
        get: operations["show_host"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replaces the whole desired state.
         * @description Objects that the request does not name are deleted.
         */
        post: operations["apply_host"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Prepares the migration of a VM to this host. Used between nodes. */
        post: operations["prepare_arrival"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the state of an incoming migration. An unknown one counts as abandoned. Used between nodes. */
        get: operations["show_arrival"];
        put?: never;
        post?: never;
        /** Abandons an incoming migration unless this host already owns the VM. Used between nodes. */
        delete: operations["abandon_arrival"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Transfers ownership of the VM to this host unless the migration was abandoned. Used between nodes. */
        post: operations["activate_arrival"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}/disks/{disk}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Receives the contents of a disk of an incoming VM. Used between nodes.
         * @description With `Upgrade: suimon-nbd` the connection then carries NBD; this host is the server.
         */
        get: operations["connect_arrival_disk"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/arrivals/{id}/memory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Receives memory and device state of an incoming VM. Used between nodes.
         * @description With `Upgrade: suimon-memory` the connection then carries the migration stream of QEMU.
         */
        get: operations["connect_arrival_memory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/cluster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the cluster: members, leader of each shared store, and the IOPS of this host. */
        get: operations["show_cluster"];
        /**
         * Joins a cluster and creates it if it does not exist.
         * @description Fails if etcd does not respond, except with `force`.
         */
        put: operations["replace_cluster"];
        /** Creates a cluster with this host as its first node. Fails if the cluster exists. */
        post: operations["init_cluster"];
        /** Leaves the cluster. The reservations of the host are released first. */
        delete: operations["leave_cluster"];
        options?: never;
        head?: never;
        /** Changes how the cluster is reached with a JSON merge patch (RFC 7386). */
        patch: operations["change_cluster"];
        trace?: never;
    };
    "/1.0/cluster/flows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists guaranteed, demanded and delivered IOPS of disks on shared stores of all nodes.
         * @description The reports of the nodes name a limited number of disks. For a disk below its minimum the disks that
         *     displace it are included.
         */
        get: operations["list_cluster_flows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/cluster/members/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a node that is permanently gone from the cluster. Fails for a live node. */
        delete: operations["remove_cluster_node"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns desired state, as JSON or as a host file. */
        get: operations["export_config"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/console/logins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Creates an address that logs a browser in to the console once, within one minute. */
        post: operations["create_console_login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every disk. */
        get: operations["list_disks"];
        put?: never;
        /** Adds a disk. */
        post: operations["add_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a disk. */
        get: operations["show_disk"];
        /** Replaces a disk: keys that the request does not set get their defaults. */
        put: operations["replace_disk"];
        post?: never;
        /** Deletes a disk. */
        delete: operations["delete_disk"];
        options?: never;
        head?: never;
        /** Changes keys of a disk with a JSON merge patch (RFC 7386). */
        patch: operations["change_disk"];
        trace?: never;
    };
    "/1.0/disks/{name}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checks the metadata of the file of a disk and reads all of its data.
         * @description The findings are in the report of the operation.
         */
        post: operations["check_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/compact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Returns unused space of the file of a disk to the store. */
        post: operations["compact_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/convert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Copies a disk to another file of its store, in any format and kind. */
        post: operations["convert_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Merges the file of a differencing disk into its parent, which then is the file of the disk. */
        post: operations["merge_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/disks/{name}/snapshot": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Creates a snapshot: later writes go to a new differencing file over the current one.
         * @description Clients of the disk see a pause.
         */
        post: operations["snapshot_disk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists events of the log, oldest first. */
        get: operations["list_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/events/follow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams events as they occur, one JSON object per line.
         * @description Empty lines keep the connection alive. A client that reads too slowly for the log of 10 000 events
         *     finds the number of missed events in the field `lost_before` of the next event.
         */
        get: operations["follow_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists experiments that can be run, the state of the lab worker, and queued requests. */
        get: operations["show_lab"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/compare": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compares two runs with the Mann-Whitney test for every measure that both have. */
        get: operations["compare_lab_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Withdraws a queued request, or stops its run and keeps the measured values.
         * @description A request that has ended stays unchanged.
         */
        delete: operations["withdraw_lab_request"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the last 500 runs with progress and verdict, latest first. */
        get: operations["list_lab_runs"];
        put?: never;
        /** Requests a run. `suimon lab work`, a process beside the daemon, executes requests in order. */
        post: operations["request_lab_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a run with the figures of its plan: published, measured and simulated. */
        get: operations["show_lab_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/lab/runs/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the report of a run, one self-contained HTML page. */
        get: operations["show_lab_report"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every NIC. */
        get: operations["list_nics"];
        put?: never;
        /** Adds a NIC. */
        post: operations["add_nic"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nics/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a NIC. */
        get: operations["show_nic"];
        /** Replaces a NIC: keys that the request does not set get their defaults. */
        put: operations["replace_nic"];
        post?: never;
        /** Deletes a NIC. */
        delete: operations["delete_nic"];
        options?: never;
        head?: never;
        /** Changes keys of a NIC with a JSON merge patch (RFC 7386). */
        patch: operations["change_nic"];
        trace?: never;
    };
    "/1.0/nics/{name}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Captures the frames of the port as pcapng. Ends at a limit of the request, with the connection, or when the operation in `Suimon-Operation` is cancelled. */
        get: operations["capture_nic"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every node. */
        get: operations["list_nodes"];
        put?: never;
        /** Adds a node. */
        post: operations["add_node"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nodes/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a node. */
        get: operations["show_node"];
        /** Replaces a node: keys that the request does not set get their defaults. */
        put: operations["replace_node"];
        post?: never;
        /** Deletes a node. */
        delete: operations["delete_node"];
        options?: never;
        head?: never;
        /** Changes keys of a node with a JSON merge patch (RFC 7386). */
        patch: operations["change_node"];
        trace?: never;
    };
    "/1.0/nodes/{name}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Drains this host or another node: its running VMs migrate to other nodes, and no VM may arrive.
         * @description The operation ends when no VM runs there, or no further VM can migrate.
         */
        post: operations["drain_node"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/nodes/{name}/undrain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends the drain of a node. VMs that have left stay where they are. */
        post: operations["undrain_node"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the OpenAPI document. */
        get: operations["show_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists running operations and the last 1000 that have ended, oldest first. */
        get: operations["list_operations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns an operation. */
        get: operations["show_operation"];
        put?: never;
        post?: never;
        /**
         * Requests that an operation be cancelled.
         * @description The operation ends before its next step, and desired state is restored. An operation that has ended
         *     stays unchanged. `GET` returns a cancelled operation until 1000 later operations have ended.
         */
        delete: operations["cancel_operation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations/{id}/follow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams an operation after each of its changes until it has ended, one JSON object per line.
         * @description Empty lines keep the connection alive.
         */
        get: operations["follow_operation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/operations/{id}/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns an operation when it has ended, or its current state when the time limit is reached. */
        get: operations["wait_operation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/pfs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every `[[pf]]`, a configured SR-IOV adapter. */
        get: operations["list_pfs"];
        put?: never;
        /** Adds a `[[pf]]`, a configured SR-IOV adapter. */
        post: operations["add_pf"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/pfs/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a `[[pf]]`, a configured SR-IOV adapter. */
        get: operations["show_pf"];
        /** Replaces a `[[pf]]`, a configured SR-IOV adapter: keys that the request does not set get their defaults. */
        put: operations["replace_pf"];
        post?: never;
        /** Deletes a `[[pf]]`, a configured SR-IOV adapter. */
        delete: operations["delete_pf"];
        options?: never;
        head?: never;
        /** Changes keys of a `[[pf]]`, a configured SR-IOV adapter with a JSON merge patch (RFC 7386). */
        patch: operations["change_pf"];
        trace?: never;
    };
    "/1.0/power": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the power plan, the state of each CPU setting, and energy. */
        get: operations["show_power"];
        /** Replaces the power plan. */
        put: operations["replace_power"];
        post?: never;
        /** Removes the power plan and restores the former CPU settings. */
        delete: operations["delete_power"];
        options?: never;
        head?: never;
        /** Changes keys of the power plan with a JSON merge patch (RFC 7386). */
        patch: operations["change_power"];
        trace?: never;
    };
    "/1.0/processors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the workers (data-plane threads). */
        get: operations["list_processors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/qos-policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every QoS policy. */
        get: operations["list_qos_policies"];
        put?: never;
        /** Adds a QoS policy. */
        post: operations["add_qos_policy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/qos-policies/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a QoS policy. */
        get: operations["show_qos_policy"];
        /** Replaces a QoS policy: keys that the request does not set get their defaults. */
        put: operations["replace_qos_policy"];
        post?: never;
        /** Deletes a QoS policy. */
        delete: operations["delete_qos_policy"];
        options?: never;
        head?: never;
        /** Changes keys of a QoS policy with a JSON merge patch (RFC 7386). */
        patch: operations["change_qos_policy"];
        trace?: never;
    };
    "/1.0/qos/flows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists guaranteed, demanded and delivered IOPS of every open disk, and its limiting factors. */
        get: operations["list_qos_flows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/qos/what-if": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Computes the reservations of stores under proposed limits. Nothing is changed. */
        post: operations["forecast_qos"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the queues of the data plane and the workers that own them. */
        get: operations["list_queues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/queues/{port}/{side}/{index}/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Moves a queue to another worker. No frame is lost or reordered. */
        post: operations["move_queue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/sriov": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the network adapters with SR-IOV and their virtual functions. */
        get: operations["list_sriov"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/sriov/{adapter}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns an adapter by PCI address, network device, or name of its `[[pf]]`. */
        get: operations["show_sriov"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every store. */
        get: operations["list_stores"];
        put?: never;
        /** Adds a store. */
        post: operations["add_store"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a store. */
        get: operations["show_store"];
        /** Replaces a store: keys that the request does not set get their defaults. */
        put: operations["replace_store"];
        post?: never;
        /** Deletes a store. */
        delete: operations["delete_store"];
        options?: never;
        head?: never;
        /** Changes keys of a store with a JSON merge patch (RFC 7386). */
        patch: operations["change_store"];
        trace?: never;
    };
    "/1.0/stores/{name}/image-check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Checks the metadata of an image file of a store. Nothing is written. */
        post: operations["check_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/image-info": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Describes an image file of a store and finds its parent. */
        post: operations["inspect_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/image-relink": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Records the location of the parent of a differencing image, after a backup beside the file. */
        post: operations["relink_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/image-repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repairs metadata of an image file from its copies, after a backup beside the file.
         * @description With `undo`, the contents of a backup are written back instead. Payload is not written.
         */
        post: operations["repair_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/stores/{name}/measure": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Measures the capacity of a store.
         * @description A directory is measured with a temporary file, a block device with reads only. The result is in the report
         *     of the operation and in the status of the store. With `capability_iops = "measure"` admission control
         *     uses it.
         */
        post: operations["measure_store"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/switches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every switch. */
        get: operations["list_switches"];
        put?: never;
        /** Adds a switch. */
        post: operations["add_switch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/switches/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a switch. */
        get: operations["show_switch"];
        /** Replaces a switch: keys that the request does not set get their defaults. */
        put: operations["replace_switch"];
        post?: never;
        /** Deletes a switch. */
        delete: operations["delete_switch"];
        options?: never;
        head?: never;
        /** Changes keys of a switch with a JSON merge patch (RFC 7386). */
        patch: operations["change_switch"];
        trace?: never;
    };
    "/1.0/switches/{name}/addresses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the forwarding table of a switch: configured addresses, then learned ones. */
        get: operations["list_addresses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/teams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every team. */
        get: operations["list_teams"];
        put?: never;
        /** Adds a team. */
        post: operations["add_team"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/teams/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a team. */
        get: operations["show_team"];
        /** Replaces a team: keys that the request does not set get their defaults. */
        put: operations["replace_team"];
        post?: never;
        /** Deletes a team. */
        delete: operations["delete_team"];
        options?: never;
        head?: never;
        /** Changes keys of a team with a JSON merge patch (RFC 7386). */
        patch: operations["change_team"];
        trace?: never;
    };
    "/1.0/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the counters of all ports, disks and workers at one moment.
         * @description A client computes rates from two responses and the difference of `time_monotonic_ns`.
         */
        get: operations["show_top"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/uplinks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every uplink. */
        get: operations["list_uplinks"];
        put?: never;
        /** Adds a uplink. */
        post: operations["add_uplink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/uplinks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a uplink. */
        get: operations["show_uplink"];
        /** Replaces a uplink: keys that the request does not set get their defaults. */
        put: operations["replace_uplink"];
        post?: never;
        /** Deletes a uplink. */
        delete: operations["delete_uplink"];
        options?: never;
        head?: never;
        /** Changes keys of a uplink with a JSON merge patch (RFC 7386). */
        patch: operations["change_uplink"];
        trace?: never;
    };
    "/1.0/uplinks/{name}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Captures the frames of the port as pcapng. Ends at a limit of the request, with the connection, or when the operation in `Suimon-Operation` is cancelled. */
        get: operations["capture_uplink"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vmq": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists VMQ of every uplink and team that a switch uses.
         * @description The settings are changed with the key `vmq` of the uplink or team.
         */
        get: operations["list_vmq"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vmq/{uplink}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns VMQ of one uplink or team: the worker of each queue, and the reason for its placement. */
        get: operations["show_vmq"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every VM. */
        get: operations["list_vms"];
        put?: never;
        /** Adds a VM. */
        post: operations["add_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a VM. */
        get: operations["show_vm"];
        /** Replaces a VM: keys that the request does not set get their defaults. */
        put: operations["replace_vm"];
        post?: never;
        /** Deletes a VM. */
        delete: operations["delete_vm"];
        options?: never;
        head?: never;
        /** Changes keys of a VM with a JSON merge patch (RFC 7386). */
        patch: operations["change_vm"];
        trace?: never;
    };
    "/1.0/vms/{name}/console": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Connects to the serial console of a VM, one client at a time.
         * @description With `Upgrade: suimon-console` the connection then carries the bytes of both directions.
         */
        get: operations["connect_vm_console"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/freeze": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Freezes the file systems of the guest through its agent. */
        post: operations["freeze_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/guest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns what the guest agent reports. The request can take some seconds. */
        get: operations["show_vm_guest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/kill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Terminates a VM at once, like a loss of power. */
        post: operations["kill_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/libvirt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the elements `memoryBacking` and `devices` of a libvirt domain with the NICs and disks of a VM. */
        get: operations["show_vm_libvirt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/migrate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Migrates a running VM to another node.
         * @description The operation ends when the VM runs there, or continues here.
         */
        post: operations["migrate_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops the virtual CPUs of a VM. */
        post: operations["pause_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resets a VM, as a reset button does. */
        post: operations["reset_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes the virtual CPUs of a VM. */
        post: operations["resume_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts a VM. The operation ends when its virtual CPUs run. */
        post: operations["start_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Requests a shutdown of the guest, through its agent or the power button, and waits for it. */
        post: operations["stop_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/1.0/vms/{name}/thaw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Thaws the file systems of the guest through its agent. */
        post: operations["thaw_vm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the metrics in the text format of Prometheus (version 0.0.4). */
        get: operations["show_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description `GET /1.0/switches/{name}/addresses`: one line of the forwarding table. */
        AddressStatus: {
            /** @description The address. */
            mac: string;
            /**
             * Format: int32
             * @description Its VLAN; absent for the untagged network.
             */
            vlan?: number | null;
            /** @description NIC, uplink or switch (for its host NIC) behind which it is. */
            port: string;
            /** @description Whether it was configured, not learned. */
            fixed: boolean;
            /**
             * Format: int64
             * @description Seconds since it was last seen; absent if configured.
             */
            age_s?: number | null;
        };
        /**
         * @description `[api]`: a TCP listener beside the Unix socket. It exists only with TLS and a
         *     token. Read when the daemon starts.
         */
        ApiConfig: {
            /** @description Address and port, like `192.0.2.1:8443`. A change takes effect when the daemon starts. */
            listen: string;
            /** @description PEM file with the server's certificate chain. A change takes effect when the daemon starts. */
            tls_certificate: string;
            /** @description PEM file with its private key. A change takes effect when the daemon starts. */
            tls_key: string;
            /** @description File whose first line is the bearer token every request must carry; at least 16 characters, not readable by others. A change takes effect when the daemon starts. */
            token_file: string;
            /** @description File whose first line is a bearer token for `GET /metrics` only, such as that of Prometheus; at least 16 characters, not readable by others, and not the token of `token_file`. A change takes effect when the daemon starts. */
            metrics_token_file?: string | null;
        };
        /** @description One error: what is wrong, where, and what to do. */
        ApiError: {
            /** @description What kind. */
            code: components["schemas"]["ErrorCode"];
            /** @description What is wrong and what to do next. */
            message: string;
            /** @description The resource, like `nic/web`. */
            resource?: string | null;
            /** @description The key, like `vlan` or `offload.tx_checksum`. */
            field?: string | null;
            /** @description The file, if one was given. */
            file?: string | null;
            /** @description The line in it, counted from 1. */
            line?: number | null;
        };
        /**
         * @description What the host is to be: the host file as text or as a value.
         * @example {
         *       "config": {
         *         "switch": [
         *           {
         *             "kind": "private",
         *             "name": "lan"
         *           }
         *         ]
         *       }
         *     }
         */
        ApplyRequest: {
            /** @description The host file as text. */
            toml: string;
            /** @description Name of the file, for errors. */
            file?: string;
        } | {
            config: components["schemas"]["HostConfig"];
            /** @description Name of the file, for errors. */
            file?: string;
        };
        /** @description `GET /1.0/arrivals/{id}`. */
        Arrival: {
            /** @description Names the migration. */
            id: string;
            /** @description What becomes of it. */
            state: components["schemas"]["ArrivalState"];
        };
        /** @description `POST /1.0/arrivals`: a VM that runs on another node wants to come. */
        ArrivalRequest: {
            /**
             * Format: int32
             * @description [`MIGRATION_PROTOCOL`] of the node that it leaves.
             */
            protocol: number;
            /** @description Names the migration, 32 hexadecimal digits; chosen by the node that it leaves, at random. */
            id: string;
            /** @description The name of the host that it leaves. */
            from: string;
            /** @description The VM. */
            vm: components["schemas"]["VmConfig"];
            /** @description How it was started, which holds as long as it runs. */
            as_started: components["schemas"]["VmConfig"];
            /** @description Whether its CPUs stand still, and stay so. */
            is_paused: boolean;
            /** @description What the guest sees as the machine's identity, 32 hexadecimal digits. */
            uuid: string;
            /** @description Its NICs. */
            nics: components["schemas"]["NicConfig"][];
            /**
             * @description Its disks: those that are copied as they are to be made, without parents and with their
             *     size; those that are handed over as they are.
             */
            disks: components["schemas"]["DiskConfig"][];
            /** @description Which of them are handed over. They are opened when the VM becomes active. */
            handed_over?: components["schemas"]["DiskHandedOver"][];
            /** @description By what their stores are known to be the same on both nodes, one for each. */
            stores?: components["schemas"]["StoreToken"][];
            /** @description The QoS policies that they name. */
            qos_policies: components["schemas"]["QosPolicyConfig"][];
            /** @description Whether KVM runs it; otherwise QEMU translates. */
            is_kvm: boolean;
            /**
             * Format: int32
             * @description Virtual CPUs that it has now.
             */
            cpus_now: number;
            /** @description QEMU's version, like `7.2.22`. */
            qemu_version: string;
            /** @description The machine that QEMU emulates, like `pc-q35-7.2`. */
            machine: string;
            /** @description Where virtio devices are plugged in. */
            ports: components["schemas"]["ArrivingPort"][];
            /**
             * @description What the CPU can do that it leaves, as the host's kernel names it (`flags` in
             *     `/proc/cpuinfo`). Matters with KVM only.
             */
            cpu_flags: string[];
        };
        /**
         * @description What becomes of a VM that comes.
         * @enum {string}
         */
        ArrivalState: "waiting" | "active" | "abandoned";
        /** @description Where a device of a VM that runs is plugged in. */
        ArrivingPort: {
            /** @description `nic/NAME` or `disk/NAME`. */
            device: string;
            /**
             * Format: int32
             * @description The machine's port, from 0 on.
             */
            port: number;
        };
        /**
         * @description A number of bytes. Read from a number or from a text like `"10 GiB"`; written as a
         *     number in JSON.
         */
        ByteSize: components["schemas"]["ByteSizeText"];
        ByteSizeText: number | string;
        /**
         * @description How it is known what a store can do.
         * @enum {string}
         */
        CapabilitySource: "declared" | "measured";
        /** @description A disk that gets more than it is entitled to. */
        ClusterAggressor: {
            /** @description The node that it is on. */
            node: string;
            /** @description Its name there. */
            disk: string;
            /**
             * Format: int64
             * @description What it gets.
             */
            delivered_iops: number;
            /**
             * Format: int64
             * @description What of it it is entitled to.
             */
            entitled_iops: number;
        };
        /** @description A node that writes on a store that it lives. */
        ClusterBeat: {
            /** @description Its cluster. */
            cluster: components["schemas"]["Name"];
            /** @description Its name there. */
            node: components["schemas"]["Name"];
            /** @description Whether it is not of this cluster. */
            is_stranger: boolean;
            /**
             * Format: int64
             * @description What its disks on the store did, in normalised operations per second.
             */
            delivered_iops: number;
            /**
             * Format: int64
             * @description What they may do without anybody.
             */
            reserved_iops: number;
            /**
             * Format: int64
             * @description How long ago that was seen, in ms. Nodes write each 5 s.
             */
            age_ms: number;
        };
        /** @description What a host may do of a store, in normalised operations per second. */
        ClusterCap: {
            /**
             * Format: int64
             * @description Now.
             */
            iops: number;
            /**
             * Format: int64
             * @description Without end, with the cluster or without.
             */
            reserved_iops: number;
            /**
             * Format: int64
             * @description While the lease lasts; absent if there is none.
             */
            leased_iops?: number | null;
            /**
             * Format: int64
             * @description For how long it lasts, in ms, if no other comes.
             */
            lease_ms?: number | null;
            /**
             * Format: int64
             * @description What holds in place of that when the cluster was not heard of for long; absent if nothing
             *     else does.
             */
            fallback_iops?: number | null;
            /**
             * Format: int64
             * @description In how many ms, if nothing is heard until then.
             */
            fallback_ms?: number | null;
        };
        /**
         * @description `[cluster]`: the cluster that this host is a node of, and its etcd. Stores with `shared = true`
         *     are held to what the cluster gives this node of them. Without it a host is by itself.
         */
        ClusterConfig: {
            /** @description The cluster's name: nodes with the same name and etcd are in the same cluster. */
            name: components["schemas"]["Name"];
            /** @description This host's name in it, which no other node has. */
            node: components["schemas"]["Name"];
            /** @description URLs of etcd's members, such as `https://192.0.2.10:2379`. */
            endpoints: string[];
            /** @description With `https`: whom to believe and who asks. */
            tls?: null | components["schemas"]["ClusterTls"];
            /** @description The user of etcd that this node is, if etcd wants one. */
            user?: string | null;
            /** @description Absolute path of a file whose first line is the user's password. Nobody else may read it. */
            password_file?: string | null;
        };
        /** @description Merge patch (RFC 7386) of `cluster`: keys that are absent stay as they are, null removes a key. */
        ClusterConfigPatch: {
            /** @description The cluster's name: nodes with the same name and etcd are in the same cluster. */
            name?: components["schemas"]["Name"];
            /** @description This host's name in it, which no other node has. */
            node?: components["schemas"]["Name"];
            /** @description URLs of etcd's members, such as `https://192.0.2.10:2379`. */
            endpoints?: string[];
            /** @description With `https`: whom to believe and who asks. */
            tls?: null | components["schemas"]["ClusterTlsPatch"];
            /** @description The user of etcd that this node is, if etcd wants one. */
            user?: string | null;
            /** @description Absolute path of a file whose first line is the user's password. Nobody else may read it. */
            password_file?: string | null;
        };
        /**
         * @description `GET /1.0/cluster/flows`: a disk on a shared store, as its node's last report names it. Rates are
         *     normalised operations per second. A report names the 8 disks that get the most beyond what they
         *     are entitled to, and the 8 worst of those that do not get it.
         */
        ClusterDisk: {
            /** @description The node that it is on. */
            node: string;
            /** @description The store. */
            store: string;
            /** @description Its name there. */
            disk: string;
            /**
             * Format: int64
             * @description What its minimum entitles it to of what it asks for.
             */
            entitled_iops: number;
            /**
             * Format: int64
             * @description What it asks for.
             */
            demanded_iops: number;
            /**
             * Format: int64
             * @description What it gets.
             */
            delivered_iops: number;
            /**
             * @description Who gets more than it is entitled to on any node, most first, while this disk does not get
             *     what it is; absent if it does.
             */
            aggressors?: components["schemas"]["ClusterAggressor"][] | null;
        };
        /** @description A node of the cluster. */
        ClusterMember: {
            /** @description Its name in the cluster. */
            name: string;
            /**
             * Format: int32
             * @description Its number, which no other node ever has.
             */
            id: number;
            /** @description Whether it is this host. */
            is_this: boolean;
            /** @description Whether it keeps its lease in etcd alive. */
            is_alive: boolean;
        };
        /** @description What a node was given of a store. */
        ClusterShare: {
            /** @description The node. */
            node: string;
            /**
             * Format: int64
             * @description Normalised operations per second that it may do while its lease lasts.
             */
            leased_iops: number;
            /**
             * Format: int64
             * @description The same without end.
             */
            reserved_iops: number;
        };
        /** @description `GET /1.0/cluster`. */
        ClusterStatus: {
            config?: null | components["schemas"]["ClusterConfig"];
            /**
             * @description Up if the host is a node of the cluster and etcd answers, down if etcd does not answer, failed if
             *     the host cannot be the node that it is to be.
             */
            condition: components["schemas"]["Condition"];
            /**
             * Format: int64
             * @description How old the rest of this is, in ms; absent if nothing was ever heard.
             */
            age_ms?: number | null;
            /** @description All nodes, by name. */
            members: components["schemas"]["ClusterMember"][];
            /** @description This host's stores that nodes share, in the order in which they are configured. */
            stores: components["schemas"]["ClusterStore"][];
        };
        /** @description A store that nodes share. */
        ClusterStore: {
            /** @description The store. */
            store: components["schemas"]["Name"];
            /** @description The node that divides it among nodes. */
            leader?: string | null;
            /**
             * Format: int64
             * @description That node's term: higher than that of any leader before.
             */
            term?: number | null;
            /**
             * Format: int64
             * @description What the store can do, in normalised operations per second, as this host has it.
             */
            capability_iops?: number | null;
            /**
             * Format: int64
             * @description What all nodes together may do, in normalised operations per second: less than it can do
             *     where something else loads it.
             */
            limit_iops?: number | null;
            /** @description Whether something loads the store that is not of the cluster, or it does less than it can. */
            has_foreign_load: boolean;
            /** @description What this host may do. */
            cap: components["schemas"]["ClusterCap"];
            /** @description What each node was given last. */
            shares: components["schemas"]["ClusterShare"][];
            /** @description Other nodes that were seen on the store itself, with etcd or without. */
            seen?: components["schemas"]["ClusterBeat"][];
            /** @description Why this host does not take part in it, if it does not. */
            wrong?: string | null;
        };
        /** @description `[cluster.tls]`. */
        ClusterTls: {
            /** @description Absolute path of the certificates, in PEM, of which one has signed those of etcd's members. */
            authority: string;
            /** @description Absolute path of this node's certificate, in PEM, if etcd wants one. */
            certificate?: string | null;
            /** @description Absolute path of its private key. */
            key?: string | null;
        };
        /** @description Merge patch (RFC 7386) of `tls`: keys that are absent stay as they are, null removes a key. */
        ClusterTlsPatch: {
            /** @description Absolute path of the certificates, in PEM, of which one has signed those of etcd's members. */
            authority?: string;
            /** @description Absolute path of this node's certificate, in PEM, if etcd wants one. */
            certificate?: string | null;
            /** @description Absolute path of its private key. */
            key?: string | null;
        };
        /** @description Health with its reason. */
        Condition: {
            /** @description In one word. */
            health: components["schemas"]["Health"];
            /** @description Why it is not up. */
            reason?: string | null;
        };
        /** @description Confinement of one kind of thread. */
        ConfinementLayer: {
            /**
             * @description `process` (all threads), `processors`, `front-ends` (threads that read
             *     VMMs' messages), or `nbd-servers` (threads that take NBD clients in, and carry
             *     their TLS).
             */
            threads: string;
            /** @description Capabilities that are left. */
            capabilities: string[];
            /** @description Which system calls work, like `44 allowed`. */
            system_calls: string;
            /** @description What Landlock does, like `full, version 7`. */
            landlock: string;
        };
        /**
         * @description How far the daemon is confined.
         * @enum {string}
         */
        ConfinementMode: "full" | "partial" | "off";
        /** @description Confinement of the daemon: what its threads can no longer ask of the kernel. */
        ConfinementStatus: {
            /** @description In one word. */
            mode: components["schemas"]["ConfinementMode"];
            /** @description What is missing and what follows from that; empty if nothing is. */
            lacking: string[];
            /** @description What is in effect for each kind of thread there has been. */
            layers: components["schemas"]["ConfinementLayer"][];
            /**
             * Format: int64
             * @description System calls refused since the daemon started. A daemon without a defect,
             *     and in nobody else's hand, has none.
             */
            refused_calls: number;
        };
        /** @description `[console]`: the web console, for browsers on this machine. Read when the daemon starts. */
        ConsoleConfig: {
            /** @description Loopback address and port, like `127.0.0.1:7446`. From elsewhere through a tunnel, such as `ssh -L 7446:127.0.0.1:7446 HOST`. A change takes effect when the daemon starts. */
            listen: string;
            /** @description File whose first line is a token with which one can log in; at least 16 characters, not readable by others. Without it `suimon console` alone says how to log in. A change takes effect when the daemon starts. */
            token_file?: string | null;
        };
        /** @description An address that logs a browser in to the console. */
        ConsoleLogin: {
            /** @description To be opened in a browser on the host, once. */
            url: string;
            /**
             * Format: int64
             * @description How long it can be used, in seconds from now.
             */
            valid_s: number;
        };
        /** @description `POST /1.0/disks/{name}/convert`: a copy of the disk in another file of its store. */
        ConvertDiskRequest: {
            /** @description The new file, relative to the store's path; it is not there yet. */
            file: components["schemas"]["StoreFile"];
            /** @description Its format; not `pass-through`. */
            format: components["schemas"]["DiskFormat"];
            kind?: null | components["schemas"]["DiskKind"];
        };
        /** @description One feature of a network device. */
        DeviceFeatureStatus: {
            /** @description As `ethtool -k` calls it, like `tx-tcp-segmentation`. */
            name: string;
            /**
             * @description As `ethtool -k` words it: `on`, `off`, `on [fixed]`, `off [fixed]`,
             *     `on [requested off]`, `off [requested on]`.
             */
            state: string;
        };
        /** @description What a network device does itself. */
        DeviceFeaturesStatus: {
            /**
             * @description Why it is not known; absent if it is, or if the uplink is a TAP, which has no
             *     device behind it.
             */
            unknown?: string | null;
            /** @description Those features that matter here. */
            features: components["schemas"]["DeviceFeatureStatus"][];
        };
        /** @description `[[disk]]`. */
        DiskConfig: {
            /** @description Unique among disks. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description The store it is in. A change replaces the resource. */
            store: components["schemas"]["Name"];
            /** @description Its file, relative to the store's path; the disk's name with `.raw`, `.vhd` or `.vhdx` if absent. It is made if it is not there, and stays when the disk is deleted. A change replaces the resource. */
            file?: string | null;
            /** @description How it is kept; with `pass-through` the disk is all of its store's block device. A change replaces the resource. */
            format: components["schemas"]["DiskFormat"];
            /** @description What of it is in its file: all (`fixed`), what was written (`dynamic`; a raw file is sparse then), or what was written beside a parent (`differencing`). If absent, an existing VHD or VHDX is opened as the kind that it is; a new file is `differencing` with `parent`, `dynamic` as `vhd` or `vhdx`, else `fixed`. A change replaces the resource. */
            kind?: null | components["schemas"]["DiskKind"];
            /** @description Bytes of the disk, like `"10 GiB"`; needed where its file is not there yet. It can grow and never shrinks. As large as its file says if absent. */
            size_bytes?: null | number | string;
            /** @description differencing: the file that has what was not written here, relative to the store's path. Nothing may write to it. If absent, the parent that the image records is searched: at the recorded path, then under the same name in the image's directory. A new differencing file needs it. A change replaces the resource. */
            parent?: string | null;
            /**
             * @description Whether nothing can be written. A change replaces the resource.
             * @default false
             */
            read_only?: boolean;
            /** @description Serial number that the guest sees, to 20 printable ASCII characters; the beginning of the disk's name if absent. A change replaces the resource. */
            serial?: string | null;
            /**
             * @description Bytes of a sector as the guest addresses it, 512 or 4096. A change replaces the resource.
             * @default 512
             * @enum {integer}
             */
            logical_sector?: 512 | 4096;
            /**
             * @description Bytes that are written best at a time, as the guest sees it, 512 or 4096. A change replaces the resource.
             * @default 4096
             * @enum {integer}
             */
            physical_sector?: 512 | 4096;
            /** @description Bytes of a block, a power of two: 512 KiB to 2 MiB in a VHD, 2 MiB if absent; 1 to 256 MiB in a VHDX, 32 MiB if absent. Read when the file is made. */
            block_bytes?: null | number | string;
            /** @description The QoS policy whose limits it has. Not together with limits of its own. */
            qos_policy?: null | components["schemas"]["Name"];
            /** @description Limits of its own. */
            qos?: components["schemas"]["DiskQos"];
            /**
             * @description What requests do that the store has no space for. `wait`: they are queued until there is space, those of a VM's virtio disk for as long as it takes, those of NBD clients for `full_wait_s`; a VM with an IDE or SATA disk is paused and goes on when there is space. `error`: they fail at once.
             * @default wait
             */
            on_full?: components["schemas"]["DiskOnFull"];
            /**
             * Format: int32
             * @description Seconds that requests of NBD clients are queued at most while the store is full, 0 to 86 400. After that they fail with `NBD_ENOSPC`.
             */
            full_wait_s?: number;
            /**
             * @description On what its VM finds it. An IDE or SATA disk is there from a start of the VM on, and needs neither `vhost_user` nor `nbd` for it. A change replaces the resource.
             * @default virtio
             */
            controller?: components["schemas"]["DiskController"];
            /** @description The VM that it is attached to as a virtio disk; not attached so if absent. A change replaces the resource. */
            vhost_user?: null | components["schemas"]["DiskVhostUser"];
            /** @description Where NBD clients find it, by its name; nowhere if absent. */
            nbd?: null | components["schemas"]["DiskNbd"];
        };
        /** @description Merge patch (RFC 7386) of `disk`: keys that are absent stay as they are, null removes a key. */
        DiskConfigPatch: {
            /** @description Unique among disks. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description The store it is in. A change replaces the resource. */
            store?: components["schemas"]["Name"];
            /** @description Its file, relative to the store's path; the disk's name with `.raw`, `.vhd` or `.vhdx` if absent. It is made if it is not there, and stays when the disk is deleted. A change replaces the resource. */
            file?: string | null;
            /** @description How it is kept; with `pass-through` the disk is all of its store's block device. A change replaces the resource. */
            format?: components["schemas"]["DiskFormat"];
            /** @description What of it is in its file: all (`fixed`), what was written (`dynamic`; a raw file is sparse then), or what was written beside a parent (`differencing`). If absent, an existing VHD or VHDX is opened as the kind that it is; a new file is `differencing` with `parent`, `dynamic` as `vhd` or `vhdx`, else `fixed`. A change replaces the resource. */
            kind?: null | components["schemas"]["DiskKind"];
            /** @description Bytes of the disk, like `"10 GiB"`; needed where its file is not there yet. It can grow and never shrinks. As large as its file says if absent. */
            size_bytes?: null | number | string;
            /** @description differencing: the file that has what was not written here, relative to the store's path. Nothing may write to it. If absent, the parent that the image records is searched: at the recorded path, then under the same name in the image's directory. A new differencing file needs it. A change replaces the resource. */
            parent?: string | null;
            /** @description Whether nothing can be written. A change replaces the resource. */
            read_only?: boolean | null;
            /** @description Serial number that the guest sees, to 20 printable ASCII characters; the beginning of the disk's name if absent. A change replaces the resource. */
            serial?: string | null;
            /**
             * @description Bytes of a sector as the guest addresses it, 512 or 4096. A change replaces the resource.
             * @enum {integer|null}
             */
            logical_sector?: 512 | 4096 | null;
            /**
             * @description Bytes that are written best at a time, as the guest sees it, 512 or 4096. A change replaces the resource.
             * @enum {integer|null}
             */
            physical_sector?: 512 | 4096 | null;
            /** @description Bytes of a block, a power of two: 512 KiB to 2 MiB in a VHD, 2 MiB if absent; 1 to 256 MiB in a VHDX, 32 MiB if absent. Read when the file is made. */
            block_bytes?: null | number | string;
            /** @description The QoS policy whose limits it has. Not together with limits of its own. */
            qos_policy?: null | components["schemas"]["Name"];
            /** @description Limits of its own. */
            qos?: null | components["schemas"]["DiskQosPatch"];
            /** @description What requests do that the store has no space for. `wait`: they are queued until there is space, those of a VM's virtio disk for as long as it takes, those of NBD clients for `full_wait_s`; a VM with an IDE or SATA disk is paused and goes on when there is space. `error`: they fail at once. */
            on_full?: null | components["schemas"]["DiskOnFull"];
            /**
             * Format: int32
             * @description Seconds that requests of NBD clients are queued at most while the store is full, 0 to 86 400. After that they fail with `NBD_ENOSPC`.
             */
            full_wait_s?: number | null;
            /** @description On what its VM finds it. An IDE or SATA disk is there from a start of the VM on, and needs neither `vhost_user` nor `nbd` for it. A change replaces the resource. */
            controller?: null | components["schemas"]["DiskController"];
            /** @description The VM that it is attached to as a virtio disk; not attached so if absent. A change replaces the resource. */
            vhost_user?: null | components["schemas"]["DiskVhostUserPatch"];
            /** @description Where NBD clients find it, by its name; nowhere if absent. */
            nbd?: null | components["schemas"]["DiskNbdPatch"];
        };
        /**
         * @description On what a VM finds a disk.
         * @enum {string}
         */
        DiskController: "virtio" | "ide" | "sata";
        /** @description What was asked of a disk since it was opened. */
        DiskCounters: {
            /** @description Reads. */
            reads: components["schemas"]["DiskRequestCounters"];
            /** @description Writes. */
            writes: components["schemas"]["DiskRequestCounters"];
            /** @description Flushes. */
            flushes: components["schemas"]["DiskRequestCounters"];
            /** @description Discards, and writes of zeros. */
            discards: components["schemas"]["DiskRequestCounters"];
        };
        /**
         * @description How a disk is kept.
         * @enum {string}
         */
        DiskFormat: "raw" | "vhd" | "vhdx" | "pass-through";
        /** @description A disk whose store has no space for its requests. */
        DiskFullStatus: {
            /**
             * Format: int64
             * @description Requests that are queued until there is space.
             */
            queued_requests: number;
            /**
             * Format: int64
             * @description Time since the first request that found the store full, in ms.
             */
            lasts_ms: number;
        };
        /** @description A disk in a store that both nodes see, as its guest knows it. */
        DiskHandedOver: {
            /** @description The disk. */
            name: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Its bytes.
             */
            size_bytes: number;
            /**
             * Format: int32
             * @description Bytes of a sector.
             */
            logical_sector: number;
            /**
             * Format: int32
             * @description Bytes that are written at a time without being read before.
             */
            physical_sector: number;
        };
        /**
         * @description What of a disk is in its file.
         * @enum {string}
         */
        DiskKind: "fixed" | "dynamic" | "differencing";
        /**
         * @description `[disk.nbd]`: the disk as an export of NBD servers, on a Unix socket, on a TCP address
         *     or on both. Disks that share a socket or an address share who is let in there.
         */
        DiskNbd: {
            /** @description Path of the Unix socket on which the daemon listens. Disks may share it. */
            socket?: string | null;
            /** @description Users of this host who are let in at `socket`, by name or number, beside those of `groups`; if both are absent, the daemon's user and group. */
            users?: string[] | null;
            /** @description Groups of this host whose members are let in at `socket`, by name or number, beside `users`. */
            groups?: string[] | null;
            /** @description Address and TCP port on which the daemon listens, like `192.0.2.1:10809`. Disks may share it. */
            listen?: string | null;
            /** @description PEM file with the certificate chain that is shown at `listen`, where nothing is answered before TLS then. */
            tls_certificate?: string | null;
            /** @description PEM file with the certificate's private key, not readable by everybody. */
            tls_key?: string | null;
            /** @description PEM file with the authorities of clients: who does not show a certificate that one of them has signed is refused. */
            tls_client_ca?: string | null;
            /** @description Names of which a client's certificate must have one, as a DNS name among its alternative names; any if absent. */
            tls_clients?: string[] | null;
            /** @description Addresses and networks whose clients are let in at `listen`, like `192.0.2.0/24`; all if absent. */
            addresses?: string[] | null;
            /**
             * @description Whether others than this host may be served without TLS, so that everybody on the way can read and change what passes. Needs `addresses`.
             * @default false
             */
            plaintext?: boolean;
        };
        /** @description A connection of an NBD client. */
        DiskNbdClient: {
            /** @description By which way it came. */
            way: components["schemas"]["NbdWay"];
            /** @description Who it is: the process and its user, or the address and port. */
            peer: string;
        };
        /** @description Merge patch (RFC 7386) of `nbd`: keys that are absent stay as they are, null removes a key. */
        DiskNbdPatch: {
            /** @description Path of the Unix socket on which the daemon listens. Disks may share it. */
            socket?: string | null;
            /** @description Users of this host who are let in at `socket`, by name or number, beside those of `groups`; if both are absent, the daemon's user and group. */
            users?: string[] | null;
            /** @description Groups of this host whose members are let in at `socket`, by name or number, beside `users`. */
            groups?: string[] | null;
            /** @description Address and TCP port on which the daemon listens, like `192.0.2.1:10809`. Disks may share it. */
            listen?: string | null;
            /** @description PEM file with the certificate chain that is shown at `listen`, where nothing is answered before TLS then. */
            tls_certificate?: string | null;
            /** @description PEM file with the certificate's private key, not readable by everybody. */
            tls_key?: string | null;
            /** @description PEM file with the authorities of clients: who does not show a certificate that one of them has signed is refused. */
            tls_client_ca?: string | null;
            /** @description Names of which a client's certificate must have one, as a DNS name among its alternative names; any if absent. */
            tls_clients?: string[] | null;
            /** @description Addresses and networks whose clients are let in at `listen`, like `192.0.2.0/24`; all if absent. */
            addresses?: string[] | null;
            /** @description Whether others than this host may be served without TLS, so that everybody on the way can read and change what passes. Needs `addresses`. */
            plaintext?: boolean | null;
        };
        /** @description A disk as an NBD export. */
        DiskNbdStatus: {
            /**
             * Format: int32
             * @description Connections that use it.
             */
            clients: number;
            /** @description These connections, in the order in which they came. */
            connections?: components["schemas"]["DiskNbdClient"][];
        };
        /**
         * @description What requests of a disk do that its store has no space for.
         * @enum {string}
         */
        DiskOnFull: "wait" | "error";
        /** @description A disk as it would be. */
        DiskProposal: {
            /** @description Its name. */
            name: components["schemas"]["Name"];
            store?: null | components["schemas"]["Name"];
            qos_policy?: null | components["schemas"]["Name"];
            /** @description Its own limits, all of them; none if neither these nor a policy is given. */
            qos?: components["schemas"]["DiskQos"];
        };
        /** @description `[disk.qos]`: limits of one disk, as a dedicated policy of its own would have them. */
        DiskQos: {
            /**
             * Format: int32
             * @description Minimum of normalised operations per second, guaranteed while there is demand, 1 to 1 000 000 000; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum of normalised operations per second, 1 to 1 000 000 000; no limit if absent. In any interval, 20 ms of it (80 ms with a minimum) and one request may come on top, and a burst.
             */
            max_iops?: number | null;
            /** @description Maximum of bytes per second, 512 to 1 TiB; no limit if absent. The same comes on top as with `max_iops`, except a burst. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Share of the capacity beyond all minimums, in proportion to the weights of others, 1 to 10 000.
             * @default 100
             */
            weight?: number;
            /**
             * Format: int32
             * @description Maximum during a burst, in normalised operations per second, above `max_iops` and up to 1 000 000 000; needs `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Length of a burst after idle time, in seconds, 1 to 3600.
             */
            burst_s?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `qos`: keys that are absent stay as they are, null removes a key. */
        DiskQosPatch: {
            /**
             * Format: int32
             * @description Minimum of normalised operations per second, guaranteed while there is demand, 1 to 1 000 000 000; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum of normalised operations per second, 1 to 1 000 000 000; no limit if absent. In any interval, 20 ms of it (80 ms with a minimum) and one request may come on top, and a burst.
             */
            max_iops?: number | null;
            /** @description Maximum of bytes per second, 512 to 1 TiB; no limit if absent. The same comes on top as with `max_iops`, except a burst. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Share of the capacity beyond all minimums, in proportion to the weights of others, 1 to 10 000.
             */
            weight?: number | null;
            /**
             * Format: int32
             * @description Maximum during a burst, in normalised operations per second, above `max_iops` and up to 1 000 000 000; needs `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Length of a burst after idle time, in seconds, 1 to 3600.
             */
            burst_s?: number | null;
        };
        /**
         * @description Requests of one kind. Latencies are from when a request was seen to when it was
         *     answered, waits for limits included.
         */
        DiskRequestCounters: {
            /**
             * Format: int64
             * @description How many.
             */
            requests: number;
            /**
             * Format: int64
             * @description Their bytes.
             */
            bytes: number;
            /**
             * Format: int64
             * @description How many of them failed.
             */
            errors: number;
            /**
             * Format: int64
             * @description Half of them took this long at most, in ns.
             */
            latency_ns_p50: number;
            /**
             * Format: int64
             * @description All but one of a hundred took this long at most, in ns.
             */
            latency_ns_p99: number;
            /**
             * Format: int64
             * @description The longest, in ns.
             */
            latency_ns_max: number;
        };
        /** @description A disk. */
        DiskStatus: {
            /** @description As desired. */
            config: components["schemas"]["DiskConfig"];
            /** @description Whether it is as desired. */
            state: components["schemas"]["StorageState"];
            /** @description Why it is not. */
            reason?: string | null;
            /** @description Absolute path of its file, or of the block device that it is. */
            file: string;
            kind?: null | components["schemas"]["DiskKind"];
            parent?: null | components["schemas"]["StoreFile"];
            /**
             * Format: int64
             * @description Bytes of the disk, as the guest sees it; absent while it is not open.
             */
            size_bytes?: number | null;
            /**
             * Format: int64
             * @description Bytes that its file takes on the file system; absent for a block device and while
             *     it is not open.
             */
            allocated_bytes?: number | null;
            /**
             * Format: int32
             * @description Files that it consists of: its own and its parents', 64 at most. 0 for a block device;
             *     absent while it is not open.
             */
            layers?: number | null;
            /**
             * Format: int64
             * @description Bytes of the image's metadata that a crash of the host would take: what was written and not
             *     flushed. 0 when the disk was idle for 2 s; absent while it is not open.
             */
            uncommitted_bytes?: number | null;
            full?: null | components["schemas"]["DiskFullStatus"];
            /**
             * Format: int32
             * @description The processor that works it off; absent while it is not open.
             */
            processor?: number | null;
            vhost_user?: null | components["schemas"]["DiskVhostUserStatus"];
            nbd?: null | components["schemas"]["DiskNbdStatus"];
            /** @description What was asked of it. */
            counters: components["schemas"]["DiskCounters"];
            qos?: null | components["schemas"]["QosFlowStatus"];
        };
        /** @description `[disk.vhost_user]`: the disk as a virtio disk of a VM. */
        DiskVhostUser: {
            /** @description Path of the Unix socket. A change replaces the resource. */
            socket: string;
            /**
             * @description Who listens on it. A change replaces the resource.
             * @default server
             */
            mode?: components["schemas"]["SocketMode"];
            /**
             * Format: int32
             * @description Queues that the guest may use, 1 to 64. A change replaces the resource.
             * @default 1
             */
            queues?: number;
        };
        /** @description Merge patch (RFC 7386) of `vhost_user`: keys that are absent stay as they are, null removes a key. */
        DiskVhostUserPatch: {
            /** @description Path of the Unix socket. A change replaces the resource. */
            socket?: string;
            /** @description Who listens on it. A change replaces the resource. */
            mode?: null | components["schemas"]["SocketMode"];
            /**
             * Format: int32
             * @description Queues that the guest may use, 1 to 64. A change replaces the resource.
             */
            queues?: number | null;
        };
        /** @description A disk as a virtio disk of a VM. */
        DiskVhostUserStatus: {
            /** @description Whether a VM is connected. */
            connected: boolean;
            /**
             * Format: int32
             * @description Queues that the guest's driver uses.
             */
            queues: number;
            /** @description Features that the guest's driver has agreed on, as virtio calls them. */
            features: string[];
        };
        /** @description What becomes of the VMs of a node that is drained: the answer to a dry run. */
        DrainPlan: {
            /** @description The node's host. */
            node: string;
            /** @description All its VMs. */
            vms: components["schemas"]["DrainedVm"][];
        };
        /**
         * @description `POST /1.0/nodes/{name}/drain`: no VM comes to the node any more, and those that run there go to
         *     others.
         */
        DrainRequest: {
            /** @description The nodes that they may go to, of that host's `[[node]]`s; all of them if there are none here. */
            to?: components["schemas"]["Name"][];
            /**
             * Format: int32
             * @description Milliseconds for which each may stand still at the end, 1 to 60 000.
             */
            downtime_ms?: number;
            bandwidth?: null | components["schemas"]["ByteSize"];
            /** @description Whether the files of their disks are deleted there once they run elsewhere. */
            with_files?: boolean;
        };
        /** @description That a host is drained. */
        DrainStatus: {
            /**
             * Format: int64
             * @description Since when, in milliseconds since 1970-01-01 UTC.
             */
            since_unix_ms: number;
            /** @description Whether all its VMs that ran have gone. One that was started since is not counted. */
            is_empty: boolean;
            /**
             * Format: int64
             * @description The operation that has them go, while it is under way.
             */
            operation?: number | null;
        };
        /** @description What becomes of a VM. */
        DrainedVm: {
            /** @description The VM. */
            vm: components["schemas"]["Name"];
            to?: null | components["schemas"]["Name"];
            /** @description Why it stays. */
            reason?: string | null;
            /** @description Whether it stays although it runs, so that the node is not empty. */
            is_in_the_way?: boolean;
        };
        /** @description Drops of one kind. */
        DropCounter: {
            /** @description Stable name of the reason, like `spoofed_source`. */
            reason: string;
            /**
             * Format: int64
             * @description How many.
             */
            frames: number;
        };
        /**
         * @description What a CPU that chooses its frequency itself is told to prefer
         *     (`energy_performance_preference` of Linux).
         * @enum {string}
         */
        EnergyPreference: "performance" | "balance_performance" | "balance_power" | "power";
        /** @description The body of every answer that is not a success. */
        ErrorBody: {
            /** @description All that was found wrong, most important first; never empty. */
            errors: components["schemas"]["ApiError"][];
        };
        /**
         * @description What kind of error. The names are part of the API.
         * @enum {string}
         */
        ErrorCode: "malformed" | "unknown_key" | "invalid_value" | "missing_key" | "key_not_applicable" | "duplicate_name" | "conflict" | "overlapping_vlans" | "unknown_reference" | "not_found" | "method_not_allowed" | "already_exists" | "in_use" | "overcommitted" | "device_missing" | "device_busy" | "unreachable" | "permission_denied" | "unsupported" | "host_error" | "unauthorized" | "cancelled" | "internal";
        /**
         * @description What happened. The numbers are part of the API: they are never given to
         *     another meaning. 1xxx host, 2xxx switch, 3xxx NIC, 4xxx uplink and team, 5xxx
         *     processor and queue, 6xxx store, disk and Storage QoS.
         */
        Event: {
            /**
             * Format: int64
             * @description Position in the log; counts up by one, survives restarts.
             */
            sequence: number;
            /**
             * Format: int64
             * @description When, in milliseconds since 1970-01-01 UTC.
             */
            time_unix_ms: number;
            /**
             * Format: int32
             * @description What kind of event.
             */
            id: number;
            /** @description How much it matters. */
            severity: components["schemas"]["Severity"];
            /** @description Whom it is about, like `nic/web`. */
            subject: string;
            /** @description For people. */
            text: string;
            /** @description For programs. */
            fields?: {
                [key: string]: string;
            };
        };
        /** @description One key that changes. */
        FieldChange: {
            /** @description The key, like `vlan` or `offload.tx_checksum`. */
            field: string;
            /** @description Its value before, as JSON; absent if it had none. */
            from?: unknown;
            /** @description Its value after, as JSON; absent if it has none. */
            to?: unknown;
        };
        /**
         * @description `POST /1.0/vms/{name}/freeze`: the agent of the VM's guest writes what waits and holds writes to
         *     its file systems, until `…/thaw`, or until the time is over. The body may be absent.
         */
        FreezeVmRequest: {
            /**
             * Format: int64
             * @description Seconds after which they are thawed if nobody did, 1 to 600.
             * @default 30
             */
            seconds?: number;
        };
        /**
         * @description Whether desired and observed state agree for one resource.
         * @enum {string}
         */
        Health: "up" | "down" | "failed";
        /** @description Everything desired of one host: the host file as a value. */
        HostConfig: {
            /** @description The host itself. */
            host?: components["schemas"]["HostSection"];
            /** @description The optional TCP listener of the API; absent means none. A change takes effect when the daemon starts. */
            api?: null | components["schemas"]["ApiConfig"];
            /** @description The optional web console; absent means none. A change takes effect when the daemon starts. */
            console?: null | components["schemas"]["ConsoleConfig"];
            /** @description Where the lab keeps its runs; absent means in its usual folder. A change takes effect when the daemon starts. */
            lab?: null | components["schemas"]["LabConfig"];
            /** @description The host's power plan; absent means that CPUs are left alone. */
            power?: null | components["schemas"]["PowerConfig"];
            /** @description The cluster that the host is a node of; absent means that it is by itself. */
            cluster?: null | components["schemas"]["ClusterConfig"];
            /** @description Switches. */
            switch?: components["schemas"]["SwitchConfig"][];
            /** @description Uplinks. */
            uplink?: components["schemas"]["UplinkConfig"][];
            /** @description Teams of uplinks. */
            team?: components["schemas"]["TeamConfig"][];
            /** @description NICs. */
            nic?: components["schemas"]["NicConfig"][];
            /** @description Stores of disks. */
            store?: components["schemas"]["StoreConfig"][];
            /** @description Storage QoS policies. */
            qos_policy?: components["schemas"]["QosPolicyConfig"][];
            /** @description Disks. */
            disk?: components["schemas"]["DiskConfig"][];
            /** @description VMs that the daemon starts. */
            vm?: components["schemas"]["VmConfig"][];
            /** @description Adapters with SR-IOV. */
            pf?: components["schemas"]["PfConfig"][];
            /** @description Other nodes, to which VMs can go. */
            node?: components["schemas"]["NodeConfig"][];
        };
        /** @description `[host]`. */
        HostSection: {
            /** @description Name of the host, for people; the machine's host name if absent. */
            name?: string | null;
            /** @description Logical CPUs given to the data plane, one processor each, which stays on it. If absent, `floating_processors` counts. */
            processors?: number[] | null;
            /**
             * Format: int32
             * @description How many processors run on any CPU the daemon may use, 1 to 64, where `processors` names none; 1 if absent.
             */
            floating_processors?: number | null;
            /** @description Absolute path of the folder in which each VM has one for its sockets and its log; `/run/suimon/vms` if absent. Read by VMs when they start. A change takes effect when a VM starts. */
            vm_folder?: string | null;
        };
        /** @description `GET /1.0`. */
        HostStatus: {
            /** @description Name of the host. */
            name: string;
            /** @description Version of the daemon. */
            version: string;
            /**
             * Format: int64
             * @description Seconds since the daemon started.
             */
            uptime_s: number;
            /**
             * Format: int64
             * @description Counts up with every change of desired state; survives restarts.
             */
            revision: number;
            /** @description Number of switches. */
            switches: number;
            /** @description Number of uplinks. */
            uplinks: number;
            /** @description Number of teams. */
            teams?: number;
            /** @description Number of NICs. */
            nics: number;
            /** @description Number of stores. */
            stores?: number;
            /** @description Number of QoS policies. */
            qos_policies?: number;
            /** @description Number of disks. */
            disks?: number;
            /** @description Number of VMs. */
            vms?: number;
            /** @description Number of adapters with SR-IOV of which something is desired. */
            pfs?: number;
            /** @description Number of other nodes. */
            nodes?: number;
            drain?: null | components["schemas"]["DrainStatus"];
            /** @description What the daemon's threads can no longer ask of the kernel. */
            confinement?: components["schemas"]["ConfinementStatus"];
        };
        /** @description A range of a file. */
        ImageChange: {
            /**
             * Format: int64
             * @description First byte.
             */
            offset: number;
            /**
             * Format: int64
             * @description Number of bytes.
             */
            bytes: number;
        };
        /** @description Changes of metadata, as `suimon image repair` and `suimon image relink` report them. */
        ImageChanges: {
            /** @description Path of the file, or its name in the store. */
            file: string;
            /** @description True if nothing was written. */
            dry_run: boolean;
            /** @description What was done, or would be done. */
            actions: string[];
            /** @description Ranges of the file that change. */
            changes: components["schemas"]["ImageChange"][];
            /**
             * Format: int64
             * @description Length of the file before.
             */
            file_bytes_before: number;
            /**
             * Format: int64
             * @description Length of the file afterwards.
             */
            file_bytes_after: number;
            /** @description File with the former metadata; absent if nothing changed, and for a dry run. */
            backup?: string | null;
            /** @description Check of the image afterwards. */
            check: components["schemas"]["ImageCheck"];
        };
        /** @description An image file, as `suimon image check` reports it. */
        ImageCheck: {
            /** @description Path of the file, or its name in the store. */
            file: string;
            /** @description Image format. */
            format: components["schemas"]["DiskFormat"];
            /** @description Result. */
            verdict: components["schemas"]["ImageVerdict"];
            /**
             * Format: int64
             * @description Number of errors.
             */
            errors: number;
            /**
             * Format: int64
             * @description Unreferenced bytes at the end of the file, which a repair gives back.
             */
            leaked_bytes: number;
            /**
             * Format: int64
             * @description Unreferenced bytes between blocks. Writes reuse them; `suimon disk compact` gives them back.
             */
            unused_bytes: number;
            /**
             * Format: int64
             * @description Blocks of the disk; 0 without blocks.
             */
            blocks: number;
            /**
             * Format: int64
             * @description Blocks that are in the file.
             */
            allocated_blocks: number;
            /** @description Findings, in the order of the file's structures; at most 1000. */
            findings: components["schemas"]["ImageFinding"][];
            /**
             * Format: int64
             * @description Number of findings beyond these.
             */
            findings_left_off: number;
        };
        /** @description Something that a check found. */
        ImageFinding: {
            /** @description Severity. */
            severity: components["schemas"]["ImageSeverity"];
            /** @description Field, offset and fault. */
            message: string;
        };
        /** @description An image file, as `suimon image info` reports it. */
        ImageInfo: {
            /** @description Path of the file, or its name in the store. */
            file: string;
            /** @description Image format. */
            format: components["schemas"]["DiskFormat"];
            kind?: null | components["schemas"]["DiskKind"];
            /**
             * Format: int64
             * @description Bytes of the disk, as a guest sees it.
             */
            size_bytes: number;
            /**
             * Format: int64
             * @description Length of the file.
             */
            file_bytes: number;
            /**
             * Format: int64
             * @description Bytes that the file takes on the file system.
             */
            allocated_bytes: number;
            /**
             * Format: int64
             * @description Bytes of a block; absent for formats and kinds without blocks.
             */
            block_bytes?: number | null;
            /**
             * Format: int32
             * @description Bytes of a logical sector.
             */
            logical_sector: number;
            /**
             * Format: int32
             * @description Bytes of a physical sector.
             */
            physical_sector: number;
            /** @description True if the image was not closed. The next writer replays its log. */
            dirty: boolean;
            /** @description Identity of the disk: Unique Id of a VHD, Virtual Disk Id of a VHDX; absent for a raw file. */
            disk_id?: string | null;
            /** @description VHDX: identity of the content, which children record as their parent's. */
            content_id?: string | null;
            parent?: null | components["schemas"]["ImageParent"];
        };
        /** @description The parent of a differencing image. */
        ImageParent: {
            /** @description Paths that the image records, in Windows syntax. */
            recorded: string[];
            /** @description File of the parent that was found; absent if there is none. */
            file?: string | null;
            /** @description Why no parent was found. */
            reason?: string | null;
        };
        /** @description What to do with an image of a store. */
        ImageRequest: {
            /** @description File, relative to the store's path. */
            file: components["schemas"]["StoreFile"];
            format?: null | components["schemas"]["DiskFormat"];
            parent?: null | components["schemas"]["StoreFile"];
            undo?: null | components["schemas"]["StoreFile"];
            /** @description repair, relink: report what would change, and write nothing. */
            dry_run?: boolean;
        };
        /**
         * @description Severity of a finding.
         * @enum {string}
         */
        ImageSeverity: "error" | "leak" | "note";
        /**
         * @description Result of a check, with the exit codes of `qemu-img check`.
         * @enum {string}
         */
        ImageVerdict: "sound" | "damaged" | "leaks" | "unsupported";
        /**
         * @description The path of a NIC's frames.
         * @enum {string}
         */
        IovPath: "synthetic" | "vf";
        /** @description Where a NIC is between its two paths. */
        IovStatus: {
            /** @description The path that its frames take. */
            path: components["schemas"]["IovPath"];
            /** @description The PCI address of the adapter whose virtual function it has, whatever its path. */
            adapter?: string | null;
            /**
             * Format: int32
             * @description The number of that function among those of the adapter.
             */
            vf?: number | null;
            /** @description The function's own PCI address. */
            address?: string | null;
            /** @description Why its frames take the switch. */
            reason?: string | null;
        };
        /**
         * @description What of a NIC's traffic the kernel moves itself. Its frames are among those of the
         *     NIC's counters.
         */
        KernelPathStatus: {
            /**
             * @description Whether frames between this NIC and others of its switch, VLAN and MTU that have
             *     theirs open may take it.
             */
            open: boolean;
            /** @description Why not. */
            reason?: string | null;
            /**
             * Format: int64
             * @description Frames that came in and took it; a large frame counts once.
             */
            rx_frames: number;
            /**
             * Format: int64
             * @description Their bytes.
             */
            rx_bytes: number;
            /**
             * Format: int64
             * @description Frames that went out and took it; a large frame counts once.
             */
            tx_frames: number;
            /**
             * Format: int64
             * @description Their bytes.
             */
            tx_bytes: number;
        };
        /**
         * @description Whether what was measured is what was published.
         * @enum {string}
         */
        LabAgreement: "agrees" | "differs" | "open" | "not-measured" | "shown";
        /** @description One measure of one case in two runs. */
        LabCompared: {
            /** @description The case, unique together with the measure. */
            case: string;
            /** @description What the case is. */
            case_words: components["schemas"]["LabWords"];
            /** @description The measure. */
            measure: string;
            /** @description What the measure is. */
            measure_words: components["schemas"]["LabWords"];
            /** @description Of the measure; empty if it has none. */
            unit: string;
            /** @description What the first run has. */
            a: components["schemas"]["LabEstimate"];
            /** @description What the second has. */
            b: components["schemas"]["LabEstimate"];
            /**
             * Format: double
             * @description What b is more than a, in percent; absent where a is 0.
             */
            more_percent?: number | null;
            /**
             * Format: double
             * @description How probable such a difference is where there is none: of Mann and Whitney's test, after
             *     Holm's correction.
             */
            p: number;
            /** @description What follows. */
            finding: components["schemas"]["LabFinding"];
        };
        /** @description `GET /1.0/lab/compare`: two runs, measure by measure. */
        LabComparison: {
            /** @description The first run. */
            a: string;
            /** @description The second. */
            b: string;
            /** @description Whether they were made on different machines. */
            other_machine: boolean;
            /** @description Every measure of every case that both have. */
            compared: components["schemas"]["LabCompared"][];
        };
        /**
         * @description `[lab]`: the runs of `suimon lab`, as the API and the console show them. Read when the daemon
         *     starts.
         */
        LabConfig: {
            /**
             * @description Absolute path of the folder of results, for which `suimon lab work` does what the API is asked for. A change takes effect when the daemon starts.
             * @default /var/lib/suimon/lab
             */
            results?: string;
        };
        /** @description A mean, and between which bounds it is in 95 of 100 such measurements. */
        LabEstimate: {
            /**
             * Format: int64
             * @description How many.
             */
            samples: number;
            /**
             * Format: double
             * @description Arithmetic.
             */
            mean: number;
            /**
             * Format: double
             * @description The one in the middle.
             */
            median: number;
            /**
             * Format: double
             * @description The lowest.
             */
            least: number;
            /**
             * Format: double
             * @description The highest.
             */
            most: number;
            /** @description The lower and the upper bound of the mean; absent for one sample. */
            interval?: number[] | null;
        };
        /** @description A figure of a plan: what was published, what was measured, what the simulator has. */
        LabFigure: {
            /** @description Unique in the plan. */
            id: string;
            /** @description What it is of. */
            of: components["schemas"]["LabWords"];
            /** @description In the document's words. */
            published: components["schemas"]["LabWords"];
            measured?: null | components["schemas"]["LabEstimate"];
            /** @description Of what was measured; empty if it has none. */
            unit: string;
            /**
             * Format: int32
             * @description How many digits after the point are shown; as many as the value needs if absent.
             */
            digits?: number | null;
            simulated?: null | components["schemas"]["LabSimulatedFigure"];
            /** @description Whether it is a bar of Suimon's own that is to be reached, not a published value. */
            bar?: boolean;
            /** @description Whether it is as expected. */
            agreement: components["schemas"]["LabAgreement"];
        };
        /**
         * @description What is found of two runs.
         * @enum {string}
         */
        LabFinding: "better" | "worse" | "different" | "not-shown" | "too-few";
        /** @description A plan that can be run. */
        LabPlan: {
            /** @description What it is called. */
            id: string;
            /** @description Its title. */
            title: components["schemas"]["LabWords"];
            /** @description What it is to find out. */
            question: components["schemas"]["LabWords"];
            /** @description The document it is after, by its short name. */
            document: string;
            /** @description The simulator's scenario of the same experiment. */
            simulation?: string | null;
            /** @description What it takes at each scale. */
            scales: components["schemas"]["LabPlanScale"][];
        };
        /** @description A plan at one scale. */
        LabPlanScale: {
            /** @description How large. */
            scale: components["schemas"]["LabScale"];
            /**
             * Format: double
             * @description About how long it takes.
             */
            seconds: number;
            /**
             * @description What it needs that this machine lacks, with how to get it; it can be run if there is
             *     nothing.
             */
            missing: components["schemas"]["LabWords"][];
        };
        /** @description Where a run is. */
        LabProgress: {
            /** @description What is measured now. */
            case: components["schemas"]["LabWords"];
            /**
             * Format: int32
             * @description For the how many-th time, from 1.
             */
            repetition: number;
            /**
             * Format: int64
             * @description How many parts are done; a part is one repetition of one case.
             */
            parts_done: number;
            /**
             * Format: int64
             * @description When this part began, in milliseconds since 1970.
             */
            part_began_ms: number;
            /**
             * Format: int64
             * @description About how many seconds the run takes from then on, if nothing has to be
             *     repeated more often than the plan says.
             */
            seconds_left: number;
        };
        /** @description What was asked for. */
        LabRequest: {
            /** @description When it was asked for, in milliseconds since 1970: requests are told apart by it. */
            id: string;
            /** @description The plan; absent once it has ended. */
            plan?: string | null;
            scale?: null | components["schemas"]["LabScale"];
            /** @description How far it is. */
            state: components["schemas"]["LabRequestState"];
            /** @description The run it became. */
            run?: string | null;
            /** @description Why it did not come to its end, or cannot be read. */
            error?: string | null;
        };
        /**
         * @description How far a request is.
         * @enum {string}
         */
        LabRequestState: "waiting" | "under-way" | "stopping" | "done" | "failed";
        /** @description A run in the list of all. */
        LabRun: {
            /** @description The name of its folder. */
            id: string;
            /** @description The plan's id. */
            plan: string;
            /** @description Whether it is of the simulator, not of this host. */
            simulated: boolean;
            /** @description As it was begun. */
            scale?: string | null;
            /** @description When: RFC 3339, UTC. */
            began?: string | null;
            /** @description How far it is. */
            state: components["schemas"]["LabRunState"];
            progress?: null | components["schemas"]["LabProgress"];
            verdict?: null | components["schemas"]["LabWords"];
            /** @description Why something of it cannot be read; it names the file. */
            error?: string | null;
        };
        /** @description `GET /1.0/lab/runs/{id}`. */
        LabRunDetails: components["schemas"]["LabRun"] & {
            /** @description Whether there is a report to read. */
            has_report: boolean;
            /** @description Why it ended before all was measured, if it did. */
            cut_short?: string | null;
            /** @description The plan's figures; nothing while there is no report. */
            figures: components["schemas"]["LabFigure"][];
            /** @description All figures of the simulator. */
            simulated_figures: components["schemas"]["LabSimulatedFigure"][];
        };
        /** @description `POST /1.0/lab/runs`: a run that somebody wants. */
        LabRunRequest: {
            /** @description The plan's id. */
            plan: string;
            /** @description How large. */
            scale?: components["schemas"]["LabScale"];
            /** @description Whether `perf` says meanwhile where CPU time goes, which takes some itself. */
            profile?: boolean;
        };
        /**
         * @description How far a run is.
         * @enum {string}
         */
        LabRunState: "whole" | "under-way" | "interrupted";
        /**
         * @description How large a run is.
         * @enum {string}
         */
        LabScale: "auto" | "quick" | "full";
        /** @description A published figure and what the simulator has for it. */
        LabSimulatedFigure: {
            /** @description The scenario's step. */
            step: string;
            /** @description Of what. */
            of: string;
            /** @description In the document's words. */
            published: string;
            /** @description What came out of the model. */
            ours: string;
            /** @description Whether they agree, within what the scenario allows. */
            agrees: boolean;
            /** @description What the figure is used for: `calibration`, `held-out` or `bar`. */
            use: string;
        };
        /** @description The lab. */
        LabStatus: {
            /** @description The folder of runs. */
            results: string;
            worker?: null | components["schemas"]["LabWorker"];
            /** @description What to do so that somebody is there; absent if somebody is. */
            remedy?: string | null;
            /** @description What can be asked for, as the last worker told. */
            plans: components["schemas"]["LabPlan"][];
            /** @description What was asked for, oldest first: all that waits or is under way, and the last that ended. */
            requests: components["schemas"]["LabRequest"][];
        };
        /** @description The same in both languages of the lab. */
        LabWords: {
            /** @description English. */
            en: string;
            /** @description Japanese. */
            ja: string;
        };
        /** @description The program that runs experiments: `suimon lab work`. */
        LabWorker: {
            /**
             * Format: int32
             * @description Its process.
             */
            pid: number;
        };
        /** @description Counters of LACP on one link, since it joined the team (IEEE 802.1AX-2014, 7.3.4). */
        LacpCounters: {
            /**
             * Format: int64
             * @description LACPDUs received that were valid.
             */
            lacpdus_rx: number;
            /**
             * Format: int64
             * @description LACPDUs sent.
             */
            lacpdus_tx: number;
            /**
             * Format: int64
             * @description Markers received.
             */
            markers_rx: number;
            /**
             * Format: int64
             * @description Markers that were left without response: too many at a time, or no link.
             */
            markers_unanswered: number;
            /**
             * Format: int64
             * @description Marker Responses received, for which nobody here asks.
             */
            marker_responses_rx: number;
            /**
             * Format: int64
             * @description Marker Responses sent.
             */
            marker_responses_tx: number;
            /**
             * Format: int64
             * @description Frames of the slow protocols that were malformed, or of a subtype that cannot be.
             */
            illegal_rx: number;
            /**
             * Format: int64
             * @description PDUs of other slow protocols.
             */
            unknown_rx: number;
            /**
             * Format: int64
             * @description LACPDUs that named another partner than the one that was known: cables were
             *     changed, or somebody forges.
             */
            partner_changes: number;
            /**
             * Format: int64
             * @description LACPDUs of this very host.
             */
            loopbacks: number;
        };
        /** @description LACP on the link of a member. */
        LacpMemberStatus: {
            /** @description Our end. */
            actor: components["schemas"]["LacpPortStatus"];
            /** @description The other end, as it was heard last or is assumed. */
            partner: components["schemas"]["LacpPortStatus"];
            /** @description State of the Receive machine, like `current`. */
            receive: string;
            /** @description State of the Periodic Transmission machine, like `slow-periodic`. */
            periodic: string;
            /** @description State of the Mux machine, like `waiting`. */
            mux: string;
            /** @description What the Selection Logic decided: `selected`, `standby` or `unselected`. */
            selected: string;
            /** @description Whether frames from it are taken. */
            collecting: boolean;
            /** @description Whether frames may be sent on it. */
            distributing: boolean;
            /** @description State of our churn detection, like `churn`: we do not get in sync. */
            actor_churn: string;
            /** @description State of churn detection for the other end. */
            partner_churn: string;
            /**
             * Format: int32
             * @description The port of this host that the link leads back to.
             */
            looped_port?: number | null;
            /**
             * Format: int64
             * @description Milliseconds since the last LACPDU was taken; absent if there was none.
             */
            last_pdu_age_ms?: number | null;
            /** @description What was counted. */
            counters: components["schemas"]["LacpCounters"];
        };
        /** @description The System that the links of a team in LACP mode lead to. */
        LacpPartnerStatus: {
            /** @description Its address. */
            system: string;
            /**
             * Format: int32
             * @description Its priority; the lower number decides which links are used.
             */
            system_priority: number;
            /**
             * Format: int32
             * @description Its key: what it aggregates has the same.
             */
            key: number;
        };
        /** @description One end of a link. Priorities: the lower number goes first. */
        LacpPortStatus: {
            /**
             * Format: int32
             * @description Priority of the System.
             */
            system_priority: number;
            /** @description The System's address; all zero if no System is known. */
            system: string;
            /**
             * Format: int32
             * @description Ports of one System and one key can aggregate.
             */
            key: number;
            /**
             * Format: int32
             * @description Priority of the port.
             */
            port_priority: number;
            /**
             * Format: int32
             * @description The port's number within its System.
             */
            port: number;
            /** @description The bits of its state that are set, such as `activity` and `synchronization`. */
            state: string[];
        };
        /**
         * @description How often the switch on the other side is to send LACPDUs, and how soon it is given
         *     up (IEEE 802.1AX-2014, 6.4.1 d).
         * @enum {string}
         */
        LacpTimer: "slow" | "fast";
        /** @description `POST /1.0/stores/{name}/measure`: what the store can do. The body may be absent. */
        MeasureStoreRequest: {
            /**
             * Format: int64
             * @description Seconds for which each pattern is measured, 1 to 600; 10 if absent.
             * @default 10
             */
            seconds?: number;
            /**
             * @description Measure although VMs or NBD clients use disks of the store: they get less meanwhile,
             *     and what is measured is what they leave.
             * @default false
             */
            beside?: boolean;
        };
        /**
         * @description The word for what is to be measured.
         * @enum {string}
         */
        MeasureWord: "measure";
        /** @description `POST /1.0/vms/{name}/migrate`: the VM goes to another node while it runs. */
        MigrateVmRequest: {
            /** @description The node, one of the host's `[[node]]`s. */
            to: components["schemas"]["Name"];
            /**
             * Format: int32
             * @description Milliseconds for which it may stand still at the end, 1 to 60 000: the last of its memory
             *     is sent then. Once what is left takes no longer, it is handed over.
             */
            downtime_ms?: number;
            bandwidth?: null | components["schemas"]["ByteSize"];
            /**
             * @description Whether the files of its disks are deleted here once it runs there. Otherwise they stay,
             *     as those of a disk that is deleted.
             */
            with_files?: boolean;
        };
        /**
         * @description Where a migration is.
         * @enum {string}
         */
        MigrationPhase: "preparing" | "copying-disks" | "copying-memory" | "switching" | "handed-over";
        /** @description `POST /1.0/queues/{port}/{rx|tx}/{index}/move`. */
        MoveQueueRequest: {
            /**
             * Format: int32
             * @description The processor that is to own it.
             */
            processor: number;
        };
        /**
         * @description The name of a resource: 1 to 63 letters, digits, `-`, `_` and `.`, starting
         *     with a letter or a digit. Safe in paths, URLs and metrics.
         */
        Name: string;
        /**
         * @description By which way NBD clients come.
         * @enum {string}
         */
        NbdWay: "unix" | "tcp" | "tls";
        /**
         * @description What a NIC stands on.
         * @enum {string}
         */
        NicBackend: "vhost-user" | "tap" | "legacy";
        /** @description `[[nic]]`. */
        NicConfig: {
            /** @description Unique among NICs. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description The switch it is connected to. */
            switch: components["schemas"]["Name"];
            /** @description What it stands on. A change replaces the resource. */
            backend: components["schemas"]["NicBackend"];
            /** @description vhost-user, legacy: path of the Unix socket; one in the folder of the NIC's VM if absent. A NIC without a socket that no VM has is not connected. A change replaces the resource. */
            socket?: string | null;
            /** @description vhost-user: who listens; `server` if absent. A change replaces the resource. */
            mode?: null | components["schemas"]["SocketMode"];
            /** @description tap: device name, 1 to 15 bytes; the NIC's name if absent. A change replaces the resource. */
            device?: string | null;
            /** @description tap: network namespace the device lives in, as `ip netns` names it. A change replaces the resource. */
            netns?: string | null;
            /** @description The NIC's address. The guest may send from no other one, and frames from it are dropped on other ports, unless `mac_spoofing` is set. If absent, a TAP NIC and a NIC of a VM get a random address when they are added, which they keep. The guest of another NIC may send from any address. Other NICs of the switch may not send from the first one that it used, until it disconnects. A change replaces a vhost-user NIC and is live on a TAP device. */
            mac?: string | null;
            /**
             * Format: int32
             * @description Access VLAN; with `trunk` the native VLAN, which is untagged here. If absent, untagged frames are of the switch's untagged network.
             */
            vlan?: number | null;
            /** @description Makes this a trunk port that carries these VLANs tagged, such as `[10, "20-29"]`. */
            trunk?: (number | string)[] | null;
            /**
             * Format: int32
             * @description Queue pairs, 1 to 64. A change replaces the resource.
             * @default 1
             */
            queues?: number;
            /**
             * Format: int32
             * @description Largest IP packet, 68 to 9216 bytes. A change replaces a vhost-user NIC and is live on a TAP device.
             * @default 1500
             */
            mtu?: number;
            /**
             * @description Whether the guest may send from addresses other than `mac`, and other ports from `mac`. If it is set on a NIC without an address, no source address is bound to the NIC.
             * @default false
             */
            mac_spoofing?: boolean;
            /**
             * @description Whether the port is kept apart from other isolated ports.
             * @default false
             */
            isolated?: boolean;
            /**
             * Format: int32
             * @description Flooded frames per second the port may cause (broadcast, multicast, unknown destination), 1 to 10 000 000; no limit if absent.
             */
            storm_limit_fps?: number | null;
            /**
             * Format: int64
             * @description Bits per second the guest may send, 8000 to 1 000 000 000 000 000; no limit if absent.
             */
            bandwidth_max_bps?: number | null;
            /**
             * Format: int32
             * @description Addresses the switch learns on this port at most, 1 to 65 536.
             * @default 1024
             */
            learned_max?: number;
            /**
             * @description tap: whether the kernel may move frames between this NIC and others that have it set too, where nothing asks the switch to look at each of them. Needs `netns`.
             * @default false
             */
            kernel_path?: boolean;
            /**
             * Format: int32
             * @description The NIC's share of processors where VMQ assigns queues by weight, to 100. With 0 it has no queue of its own: the base processor works it off.
             * @default 100
             */
            vmq_weight?: number;
            /**
             * Format: int32
             * @description How much the NIC is to have a virtual function: those of higher weight get one first, 1 to 100. With 0 it has none. Needs `mac`; on a switch without `iov` it has no effect.
             * @default 0
             */
            iov_weight?: number;
            /** @description What the guest and we may leave to each other. */
            offload?: components["schemas"]["OffloadConfig"];
        };
        /** @description Merge patch (RFC 7386) of `nic`: keys that are absent stay as they are, null removes a key. */
        NicConfigPatch: {
            /** @description Unique among NICs. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description The switch it is connected to. */
            switch?: components["schemas"]["Name"];
            /** @description What it stands on. A change replaces the resource. */
            backend?: components["schemas"]["NicBackend"];
            /** @description vhost-user, legacy: path of the Unix socket; one in the folder of the NIC's VM if absent. A NIC without a socket that no VM has is not connected. A change replaces the resource. */
            socket?: string | null;
            /** @description vhost-user: who listens; `server` if absent. A change replaces the resource. */
            mode?: null | components["schemas"]["SocketMode"];
            /** @description tap: device name, 1 to 15 bytes; the NIC's name if absent. A change replaces the resource. */
            device?: string | null;
            /** @description tap: network namespace the device lives in, as `ip netns` names it. A change replaces the resource. */
            netns?: string | null;
            /** @description The NIC's address. The guest may send from no other one, and frames from it are dropped on other ports, unless `mac_spoofing` is set. If absent, a TAP NIC and a NIC of a VM get a random address when they are added, which they keep. The guest of another NIC may send from any address. Other NICs of the switch may not send from the first one that it used, until it disconnects. A change replaces a vhost-user NIC and is live on a TAP device. */
            mac?: string | null;
            /**
             * Format: int32
             * @description Access VLAN; with `trunk` the native VLAN, which is untagged here. If absent, untagged frames are of the switch's untagged network.
             */
            vlan?: number | null;
            /** @description Makes this a trunk port that carries these VLANs tagged, such as `[10, "20-29"]`. */
            trunk?: (number | string)[] | null;
            /**
             * Format: int32
             * @description Queue pairs, 1 to 64. A change replaces the resource.
             */
            queues?: number | null;
            /**
             * Format: int32
             * @description Largest IP packet, 68 to 9216 bytes. A change replaces a vhost-user NIC and is live on a TAP device.
             */
            mtu?: number | null;
            /** @description Whether the guest may send from addresses other than `mac`, and other ports from `mac`. If it is set on a NIC without an address, no source address is bound to the NIC. */
            mac_spoofing?: boolean | null;
            /** @description Whether the port is kept apart from other isolated ports. */
            isolated?: boolean | null;
            /**
             * Format: int32
             * @description Flooded frames per second the port may cause (broadcast, multicast, unknown destination), 1 to 10 000 000; no limit if absent.
             */
            storm_limit_fps?: number | null;
            /**
             * Format: int64
             * @description Bits per second the guest may send, 8000 to 1 000 000 000 000 000; no limit if absent.
             */
            bandwidth_max_bps?: number | null;
            /**
             * Format: int32
             * @description Addresses the switch learns on this port at most, 1 to 65 536.
             */
            learned_max?: number | null;
            /** @description tap: whether the kernel may move frames between this NIC and others that have it set too, where nothing asks the switch to look at each of them. Needs `netns`. */
            kernel_path?: boolean | null;
            /**
             * Format: int32
             * @description The NIC's share of processors where VMQ assigns queues by weight, to 100. With 0 it has no queue of its own: the base processor works it off.
             */
            vmq_weight?: number | null;
            /**
             * Format: int32
             * @description How much the NIC is to have a virtual function: those of higher weight get one first, 1 to 100. With 0 it has none. Needs `mac`; on a switch without `iov` it has no effect.
             */
            iov_weight?: number | null;
            /** @description What the guest and we may leave to each other. */
            offload?: null | components["schemas"]["OffloadConfigPatch"];
        };
        /** @description A NIC. */
        NicStatus: {
            /** @description As desired. */
            config: components["schemas"]["NicConfig"];
            /** @description Whether it is as desired. */
            condition: components["schemas"]["Condition"];
            /** @description Counters. */
            counters: components["schemas"]["PortCounters"];
            /** @description Offloads. */
            offloads: components["schemas"]["OffloadStatus"][];
            /** @description Negotiated virtio features as a hexadecimal number, if it is virtio. */
            virtio_features?: string | null;
            /**
             * Format: int32
             * @description Queue pairs in use.
             */
            queue_pairs: number;
            /**
             * Format: int32
             * @description Addresses learned on it.
             */
            learned: number;
            /**
             * @description Source address that is bound to the NIC, which has no `mac`. Frames from it that other NICs send
             *     are dropped until the guest disconnects.
             */
            bound_mac?: string | null;
            kernel_path?: null | components["schemas"]["KernelPathStatus"];
            iov?: null | components["schemas"]["IovStatus"];
        };
        /** @description `[[node]]`: another host with Suimon, as this one reaches it. */
        NodeConfig: {
            /** @description Unique among nodes. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description The address and port of its API, like `192.0.2.2:8443` or `node2.example.net:8443`. */
            address: string;
            /** @description Absolute path of the certificates, in PEM, of which one has signed the node's own, or is it. */
            authority: string;
            /** @description Absolute path of a file whose first line is the token of the node's API. Nobody else may read it. */
            token_file: string;
            /** @description The name that its certificate is for; that in `address` if absent. */
            server_name?: string | null;
        };
        /** @description Merge patch (RFC 7386) of `node`: keys that are absent stay as they are, null removes a key. */
        NodeConfigPatch: {
            /** @description Unique among nodes. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description The address and port of its API, like `192.0.2.2:8443` or `node2.example.net:8443`. */
            address?: string;
            /** @description Absolute path of the certificates, in PEM, of which one has signed the node's own, or is it. */
            authority?: string;
            /** @description Absolute path of a file whose first line is the token of the node's API. Nobody else may read it. */
            token_file?: string;
            /** @description The name that its certificate is for; that in `address` if absent. */
            server_name?: string | null;
        };
        /** @description `GET /1.0/nodes/{name}`: another node, asked when it is shown. */
        NodeStatus: {
            /** @description As desired. */
            config: components["schemas"]["NodeConfig"];
            /** @description Up if it answers, down if it does not, failed if it refuses or cannot be asked. */
            condition: components["schemas"]["Condition"];
            /** @description The name that its host has there. */
            host?: string | null;
            /** @description The version of its daemon. */
            version?: string | null;
            drain?: null | components["schemas"]["DrainStatus"];
        };
        /**
         * @description `[nic.offload]`, `[uplink.offload]` and `[switch.host_offload]`: the switches of
         *     a port's offloads, seen from who uses the port: the guest uses its NIC, the host its
         *     host NIC, we use an uplink's device. All on.
         */
        OffloadConfig: {
            /**
             * @description What is sent may lack its transport checksum: the guest leaves it to us, and we leave it to an uplink's device.
             * @default true
             */
            tx_checksum?: boolean;
            /**
             * @description What is received may lack its transport checksum, and an uplink's device is believed where it says that one is good.
             * @default true
             */
            rx_checksum?: boolean;
            /**
             * @description What is sent may lack its IPv4 header checksum; no virtio NIC offloads it.
             * @default true
             */
            tx_ip_checksum?: boolean;
            /**
             * @description What is received may have an unchecked IPv4 header checksum; no virtio NIC offloads it.
             * @default true
             */
            rx_ip_checksum?: boolean;
            /**
             * @description Large TCP and UDP frames both ways.
             * @default true
             */
            segmentation?: boolean;
            /**
             * @description Received segments may be joined; both the uplink's switch and the NIC's must be on.
             * @default true
             */
            receive_coalescing?: boolean;
        };
        /** @description Merge patch (RFC 7386) of `offload`: keys that are absent stay as they are, null removes a key. */
        OffloadConfigPatch: {
            /** @description What is sent may lack its transport checksum: the guest leaves it to us, and we leave it to an uplink's device. */
            tx_checksum?: boolean | null;
            /** @description What is received may lack its transport checksum, and an uplink's device is believed where it says that one is good. */
            rx_checksum?: boolean | null;
            /** @description What is sent may lack its IPv4 header checksum; no virtio NIC offloads it. */
            tx_ip_checksum?: boolean | null;
            /** @description What is received may have an unchecked IPv4 header checksum; no virtio NIC offloads it. */
            rx_ip_checksum?: boolean | null;
            /** @description Large TCP and UDP frames both ways. */
            segmentation?: boolean | null;
            /** @description Received segments may be joined; both the uplink's switch and the NIC's must be on. */
            receive_coalescing?: boolean | null;
        };
        /**
         * @description Who does what an offload is about, whenever a frame asks for it.
         * @enum {string}
         */
        OffloadDoer: "guest" | "nic" | "kernel" | "software" | "egress" | "nobody";
        /** @description One offload of a NIC, a host NIC or an uplink: what is, and why. */
        OffloadStatus: {
            /**
             * @description `rx_checksum`, `tx_tcp4_segmentation`, …, seen from the guest, or on an uplink
             *     from the switch, which uses it.
             */
            name: string;
            /**
             * @description Whether the other side could: the guest's driver, the kernel behind a TAP, the
             *     uplink's device. Absent if that is not known: a virtio driver is not asked for
             *     what is switched off, and some kernels do not tell what a device can.
             */
            supported?: boolean | null;
            /** @description Whether its switch is on. */
            enabled: boolean;
            /** @description Whether it is used. */
            effective: boolean;
            /** @description Who does it. */
            by: components["schemas"]["OffloadDoer"];
            /** @description Why. */
            reason: string;
        };
        /**
         * @description A change under way. Every change of desired state is one.
         *
         *     ```text
         *     running ──► succeeded
         *        ├──────► failed
         *        └──────► cancelled
         *     ```
         */
        Operation: {
            /**
             * Format: int64
             * @description Unique while the daemon runs.
             */
            id: number;
            /** @description `apply`, `nic add`, `queue move`, `nic capture`, `disk convert`, … */
            kind: string;
            /** @description Whom it is about, like `nic/web`, or `host`. */
            subject: string;
            /** @description Where it stands. */
            state: components["schemas"]["OperationState"];
            /** @description Steps done. */
            steps_done: number;
            /** @description Steps in all. */
            steps: number;
            /** @description The step under way, for people. */
            step?: string | null;
            plan?: null | components["schemas"]["Plan"];
            /** @description What it found, for people, a line each: what a check of a disk has to say. */
            report?: string[];
            error?: null | components["schemas"]["ApiError"];
            /**
             * Format: int64
             * @description When it began, in milliseconds since 1970-01-01 UTC.
             */
            started_unix_ms: number;
            /**
             * Format: int64
             * @description When it ended.
             */
            ended_unix_ms?: number | null;
        };
        /**
         * @description Where an operation stands.
         * @enum {string}
         */
        OperationState: "running" | "succeeded" | "failed" | "cancelled";
        /**
         * @description `[[pf]]`: a network adapter with SR-IOV (its physical function), and the virtual
         *     functions that it is to have.
         */
        PfConfig: {
            /** @description Unique among adapters. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description The adapter: its network device, or its PCI address, which never changes. */
            device: string;
            /**
             * Format: int32
             * @description Virtual functions that it has. Their number changes only while nobody uses one.
             * @default 0
             */
            vfs?: number;
            /**
             * @description How they are set up. What is not written stays as it is.
             * @default []
             */
            vf?: components["schemas"]["VfConfig"][];
        };
        /** @description Merge patch (RFC 7386) of `pf`: keys that are absent stay as they are, null removes a key. */
        PfConfigPatch: {
            /** @description Unique among adapters. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description The adapter: its network device, or its PCI address, which never changes. */
            device?: string;
            /**
             * Format: int32
             * @description Virtual functions that it has. Their number changes only while nobody uses one.
             */
            vfs?: number | null;
            /** @description How they are set up. What is not written stays as it is. */
            vf?: components["schemas"]["VfConfig"][] | null;
        };
        /** @description What is desired of an adapter, and how it is. */
        PfStatus: {
            /** @description As desired. */
            config: components["schemas"]["PfConfig"];
            /** @description Whether it is as desired, by what was read back. */
            condition: components["schemas"]["Condition"];
            adapter?: null | components["schemas"]["SriovAdapter"];
        };
        /** @description The steps in the order in which they are taken. */
        Plan: {
            /** @description The steps; empty if desired state already is as asked. */
            steps: components["schemas"]["PlanStep"][];
        };
        /**
         * @description What happens to one resource.
         * @enum {string}
         */
        PlanAction: "create" | "change-live" | "replace" | "delete";
        /** @description One step of a plan. */
        PlanStep: {
            /** @description What happens. */
            action: components["schemas"]["PlanAction"];
            /** @description To whom, like `nic/web`. */
            resource: string;
            /** @description Which keys change; empty for create and delete. */
            changes?: components["schemas"]["FieldChange"][];
            /**
             * @description What the user should know about it, such as that it waits for the next
             *     start of the daemon.
             */
            note?: string | null;
        };
        /**
         * @description Counters of one port since it was made, seen from the switch: `rx` came in
         *     from the port, `tx` went out to it.
         */
        PortCounters: {
            /**
             * Format: int64
             * @description Frames in; a large frame counts once.
             */
            rx_frames: number;
            /**
             * Format: int64
             * @description Bytes in.
             */
            rx_bytes: number;
            /**
             * Format: int64
             * @description Frames out; a large frame counts once.
             */
            tx_frames: number;
            /**
             * Format: int64
             * @description Bytes out.
             */
            tx_bytes: number;
            /** @description Frames that came in and went nowhere, by reason. */
            rx_dropped: components["schemas"]["DropCounter"][];
            /** @description Frames meant for this port that did not go out, by reason. */
            tx_dropped: components["schemas"]["DropCounter"][];
            /**
             * Format: int64
             * @description Frames this port caused to be flooded.
             */
            flooded: number;
            /**
             * Format: int64
             * @description Frames segmented in software on their way out here.
             */
            software_segmented: number;
            /**
             * Format: int64
             * @description Frames whose checksum was completed in software on their way out here.
             */
            software_checksummed: number;
            /**
             * Format: int64
             * @description Frames that were joined with others of their TCP stream in software on their
             *     way out here.
             */
            software_coalesced_segments: number;
            /**
             * Format: int64
             * @description The large frames they became, which are among the frames out.
             */
            software_coalesced_units: number;
        };
        /** @description A setting that is not as the daemon found it. */
        PowerChangedStatus: {
            /** @description Its file below sysfs. */
            file: string;
            /** @description What it was, and will be again. */
            before: string;
            /** @description What the daemon wrote. */
            written: string;
            /** @description What it is now; absent if its file is not there, as while its CPU is offline. */
            now?: string | null;
        };
        /**
         * @description `[power]`: what becomes of the host's CPUs. Without it they are left alone. A key that is
         *     written wins over the plan. What the daemon changes it puts back when it ends.
         */
        PowerConfig: {
            /** @description The plan; `custom` asks for nothing but what is written beside it. */
            plan: components["schemas"]["PowerPlanName"];
            /** @description cpufreq governor by its name, such as `schedutil`. */
            governor?: null | components["schemas"]["Name"];
            /** @description What a CPU that chooses its frequency itself is told to prefer. */
            energy_preference?: null | components["schemas"]["EnergyPreference"];
            /**
             * Format: int32
             * @description Lowest frequency, in percent of the highest that the CPU has, 0 to 100.
             */
            performance_percent_min?: number | null;
            /**
             * Format: int32
             * @description Highest frequency, in percent of the highest that the CPU has, 1 to 100.
             */
            performance_percent_max?: number | null;
            /** @description Whether frequencies above the nominal one may be used. */
            turbo?: boolean | null;
            /** @description Name of the deepest idle state that CPUs may enter, such as `C1E`; no plan limits them. */
            idle_state_max?: string | null;
            /**
             * Format: int32
             * @description Longest time in microseconds that leaving an idle state may take, 0 to 1 000 000; CPUs enter no other. No plan limits it.
             */
            idle_latency_us_max?: number | null;
            /** @description Whether dynamic VMQ empties processors with little to do, so that they park. */
            parking?: boolean | null;
            /**
             * Format: int32
             * @description How long in microseconds a processor polls rings after the last frame or request before it sleeps, 0 to 10 000; up to four times as long for answers of devices that come so soon.
             */
            poll_us?: number | null;
            /**
             * Format: int32
             * @description High-water mark of dynamic VMQ, in percent of a processor, 50 to 95: a processor above it gives queues away.
             */
            vmq_high_percent?: number | null;
            /**
             * Format: int32
             * @description Low-water mark of dynamic VMQ, in percent of a processor, 0 to 65, and 30 below the high one at the least: a processor whose queues take no more can be emptied.
             */
            vmq_low_percent?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `power`: keys that are absent stay as they are, null removes a key. */
        PowerConfigPatch: {
            /** @description The plan; `custom` asks for nothing but what is written beside it. */
            plan?: components["schemas"]["PowerPlanName"];
            /** @description cpufreq governor by its name, such as `schedutil`. */
            governor?: null | components["schemas"]["Name"];
            /** @description What a CPU that chooses its frequency itself is told to prefer. */
            energy_preference?: null | components["schemas"]["EnergyPreference"];
            /**
             * Format: int32
             * @description Lowest frequency, in percent of the highest that the CPU has, 0 to 100.
             */
            performance_percent_min?: number | null;
            /**
             * Format: int32
             * @description Highest frequency, in percent of the highest that the CPU has, 1 to 100.
             */
            performance_percent_max?: number | null;
            /** @description Whether frequencies above the nominal one may be used. */
            turbo?: boolean | null;
            /** @description Name of the deepest idle state that CPUs may enter, such as `C1E`; no plan limits them. */
            idle_state_max?: string | null;
            /**
             * Format: int32
             * @description Longest time in microseconds that leaving an idle state may take, 0 to 1 000 000; CPUs enter no other. No plan limits it.
             */
            idle_latency_us_max?: number | null;
            /** @description Whether dynamic VMQ empties processors with little to do, so that they park. */
            parking?: boolean | null;
            /**
             * Format: int32
             * @description How long in microseconds a processor polls rings after the last frame or request before it sleeps, 0 to 10 000; up to four times as long for answers of devices that come so soon.
             */
            poll_us?: number | null;
            /**
             * Format: int32
             * @description High-water mark of dynamic VMQ, in percent of a processor, 50 to 95: a processor above it gives queues away.
             */
            vmq_high_percent?: number | null;
            /**
             * Format: int32
             * @description Low-water mark of dynamic VMQ, in percent of a processor, 0 to 65, and 30 below the high one at the least: a processor whose queues take no more can be emptied.
             */
            vmq_low_percent?: number | null;
        };
        /** @description What the kernel says of one CPU. */
        PowerCpuStatus: {
            /**
             * Format: int32
             * @description Its number.
             */
            cpu: number;
            /** @description Whether it is online. */
            online: boolean;
            /** @description Its cpufreq driver. */
            driver?: string | null;
            /** @description Its governor. */
            governor?: string | null;
            /** @description Its energy-performance preference. */
            energy_preference?: string | null;
            /**
             * Format: int32
             * @description Its lowest allowed frequency in kHz.
             */
            khz_min?: number | null;
            /**
             * Format: int32
             * @description Its highest allowed frequency in kHz.
             */
            khz_max?: number | null;
            /** @description Idle states that it may enter, the shallowest first. */
            idle_states: string[];
        };
        /** @description What the data plane does to use less, or to answer sooner. */
        PowerDataPlaneStatus: {
            /** @description Whether dynamic VMQ empties processors so that they park. */
            parking: boolean;
            /**
             * Format: int32
             * @description How long a processor polls before it sleeps.
             */
            poll_us: number;
            /**
             * Format: int32
             * @description High-water mark of dynamic VMQ in percent of a processor.
             */
            vmq_high_percent: number;
            /**
             * Format: int32
             * @description Low-water mark of dynamic VMQ in percent of a processor.
             */
            vmq_low_percent: number;
        };
        /**
         * @description How much of what is wanted is so.
         * @enum {string}
         */
        PowerEffect: "off" | "full" | "partial" | "none";
        /** @description Energy and power of the host. */
        PowerEnergyStatus: {
            /**
             * Format: int64
             * @description What packages and memory took of late, in milliwatts; absent where it is not known, or
             *     was asked for the first time for long.
             */
            milliwatts?: number | null;
            /** @description Why energy is not known. */
            lacking?: string | null;
            /** @description The counters, by zone. */
            zones: components["schemas"]["PowerZoneStatus"][];
        };
        /**
         * @description A power plan; the names are those of Windows.
         * @enum {string}
         */
        PowerPlanName: "balanced" | "high-performance" | "power-saver" | "custom";
        /** @description One thing that is wanted. */
        PowerSettingStatus: {
            /** @description Of which CPUs, ascending; of the host if empty. */
            cpus: number[];
            /**
             * @description What it is about: `governor`, `energy_preference`, `performance_percent_min`,
             *     `performance_percent_max`, `turbo` or `idle_states`.
             */
            setting: string;
            /** @description What is wanted, in words. */
            wanted: string;
            /** @description Whether it is so. */
            in_effect: boolean;
            /** @description What its files say now; absent where there are none. */
            now?: string | null;
            /** @description Why it is not so, or what else is to be known of it. */
            why_not?: string | null;
        };
        /** @description `GET /1.0/power`. */
        PowerStatus: {
            config?: null | components["schemas"]["PowerConfig"];
            /** @description How much of it is so, of CPUs. */
            effect: components["schemas"]["PowerEffect"];
            /** @description All that is wanted of CPUs, of the host and of each CPU. */
            settings: components["schemas"]["PowerSettingStatus"][];
            /** @description What is in effect in the data plane. */
            data_plane: components["schemas"]["PowerDataPlaneStatus"];
            /** @description All CPUs, by number. */
            cpus: components["schemas"]["PowerCpuStatus"][];
            /** @description All that was changed, with what comes back. */
            changed: components["schemas"]["PowerChangedStatus"][];
            /** @description Energy and power. */
            energy: components["schemas"]["PowerEnergyStatus"];
        };
        /** @description An energy counter. */
        PowerZoneStatus: {
            /** @description Its folder in powercap, like `intel-rapl:0`. */
            zone: string;
            /** @description Its name, like `package-0`. */
            name: string;
            /**
             * Format: int64
             * @description Microjoules since the daemon first read it, without those of spans in which nobody
             *     asked for so long that the counter may have begun anew twice.
             */
            energy_uj: number;
            /**
             * Format: int64
             * @description What it took of late, in milliwatts.
             */
            milliwatts?: number | null;
            /** @description Whether it is a part of the host's sum: cores are in their package. */
            counted: boolean;
        };
        /**
         * @description A processor's time since it started, in ns by what it did. Each nanosecond counts
         *     once: the stages add up to all of its time. While it works the account is about a
         *     millisecond old, or one round of its queues if that takes longer.
         */
        ProcessorStages: {
            /**
             * Format: int64
             * @description Frames were taken from queues: copied out of rings or read from devices,
             *     checked, and captured on their way in.
             */
            copy_in_ns: number;
            /**
             * Format: int64
             * @description Headers were read and destinations decided.
             */
            classify_ns: number;
            /**
             * Format: int64
             * @description Segments of streams were looked for and joined.
             */
            coalesce_ns: number;
            /**
             * Format: int64
             * @description Large frames were cut, without the checksums of the segments.
             */
            segment_ns: number;
            /**
             * Format: int64
             * @description Checksums of frames and of segments were completed.
             */
            checksum_ns: number;
            /**
             * Format: int64
             * @description Frames were handed to queues, or to the processors that own those.
             */
            copy_out_ns: number;
            /**
             * Format: int64
             * @description What was handed over was made visible, and the other sides were notified.
             */
            notify_ns: number;
            /**
             * Format: int64
             * @description Requests of disks were taken, translated, handed to the device and answered.
             */
            storage_ns?: number;
            /**
             * Format: int64
             * @description Work was looked for: polls that brought nothing, descriptors, messages of other
             *     processors and of the control plane, the way into sleep and out of it.
             */
            poll_ns: number;
            /**
             * Format: int64
             * @description It slept; until it was asked, if it sleeps now.
             */
            idle_ns: number;
        };
        /** @description A processor. */
        ProcessorStatus: {
            /**
             * Format: int32
             * @description Counts from 0.
             */
            id: number;
            /**
             * Format: int32
             * @description The logical CPU it is pinned to; none if it runs on any that the daemon may use,
             *     as it does where the host's `processors` are not set.
             */
            cpu?: number | null;
            /** @description Queues it owns. */
            queues: number;
            /**
             * Format: int64
             * @description CPU time used since the daemon started, in ns.
             */
            cpu_time_ns: number;
            /**
             * Format: int64
             * @description Time in which it did not sleep, in ns: all of its stages but idle.
             */
            busy_ns: number;
            /**
             * Format: int64
             * @description Batches taken from queues.
             */
            batches: number;
            /**
             * Format: int64
             * @description Frames taken from queues.
             */
            frames: number;
            /**
             * Format: int64
             * @description Times it went to sleep.
             */
            sleeps: number;
            /** @description Whether it sleeps now. */
            asleep: boolean;
            /**
             * Format: int64
             * @description Times it stopped polling for answers of devices for a while, because somebody else wants
             *     all of its CPU.
             */
            rests?: number;
            /** @description Whether it does not poll now for that reason. */
            resting?: boolean;
            /** @description Where its time went. */
            stages?: components["schemas"]["ProcessorStages"];
        };
        /**
         * @description What a disk was entitled to, wanted and got over a while. Rates are normalised
         *     operations per second.
         */
        QosDelivery: {
            /**
             * Format: int64
             * @description How long that was, in ns: less than asked for while the disk is new.
             */
            window_ns: number;
            /**
             * Format: int64
             * @description What it was entitled to while it had something to do.
             */
            entitled_iops: number;
            /**
             * Format: int64
             * @description What it wanted.
             */
            demanded_iops: number;
            /**
             * Format: int64
             * @description What it got.
             */
            delivered_iops: number;
            /**
             * @description How long its requests waited, in ns summed over them, by cause: `own-maximum`,
             *     `own-bandwidth`, `shared-policy`, `others-minimums`, `device-depth`.
             */
            waits_ns?: {
                [key: string]: number;
            };
            /**
             * @description Shares of the window's time by what limited the disk, the first limiting factor first. They
             *     come to 1 000 000.
             */
            limited_by?: components["schemas"]["QosTimeShare"][];
            /**
             * Format: int64
             * @description Mean number of requests that were queued or in the device while there were any, in
             *     thousandths.
             */
            queue_depth_milli?: number;
            /**
             * Format: int64
             * @description Mean time of a read or write in the device, in ns; absent if none completed.
             */
            device_latency_ns?: number | null;
            /**
             * Format: int64
             * @description The device's own latency for these (reads and writes apart, by size) at the same depth, in ns: the lowest in the last one to two
             *     hours, or that of the store's measurement.
             */
            device_own_latency_ns?: number | null;
        };
        /** @description `GET /1.0/qos/flows`: what a disk gets, and what it is held to. */
        QosFlowStatus: {
            /** @description The disk. */
            disk: components["schemas"]["Name"];
            /** @description The store it is in. */
            store: components["schemas"]["Name"];
            /**
             * @description Whose limits it has: `disk/NAME`, or `qos_policy/NAME` for an aggregated policy,
             *     whose disks share them.
             */
            holder: string;
            /** @description The limits in effect. */
            limits: components["schemas"]["DiskQos"];
            /**
             * Format: int32
             * @description Requests queued in the scheduler.
             */
            waiting: number;
            /**
             * Format: int32
             * @description Requests in the device.
             */
            in_flight: number;
            /** @description Over the last 5 s. */
            last_5_s: components["schemas"]["QosDelivery"];
            /** @description Over the last 5 min. */
            last_5_min: components["schemas"]["QosDelivery"];
        };
        /**
         * @description What limits a disk's throughput.
         * @enum {string}
         */
        QosLimitingFactor: "store-full" | "own-maximum" | "own-bandwidth" | "shared-policy" | "store-cap" | "others-minimums" | "device-saturated" | "device-slow" | "flushes" | "metadata" | "discards" | "unmeasured" | "worker" | "queue-depth" | "client-idle" | "device";
        /**
         * @description `[[qos_policy]]`: limits that several disks refer to. Operations are normalised: a
         *     request counts as one for each `normalization_bytes` of its store that it has begun.
         */
        QosPolicyConfig: {
            /** @description Unique among QoS policies. It cannot be changed. */
            name: components["schemas"]["Name"];
            /**
             * @description `dedicated`: each disk of the policy has these limits. `aggregated`: all its disks on a store have them together.
             * @default dedicated
             */
            kind?: components["schemas"]["QosPolicyKind"];
            /**
             * @description True: the policy exists on all nodes of the cluster with the same limits, and a change on one node applies to all. If it is aggregated, its disks on a shared store have the limits together across nodes. Without effect outside of a cluster.
             * @default false
             */
            shared?: boolean;
            /**
             * Format: int32
             * @description Minimum of normalised operations per second, guaranteed while there is demand, 1 to 1 000 000 000; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum of normalised operations per second, 1 to 1 000 000 000; no limit if absent. In any interval, 20 ms of it (80 ms with a minimum) and one request may come on top, and a burst.
             */
            max_iops?: number | null;
            /** @description Maximum of bytes per second, 512 to 1 TiB; no limit if absent. The same comes on top as with `max_iops`, except a burst. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Share of the capacity beyond all minimums, in proportion to the weights of others, 1 to 10 000.
             * @default 100
             */
            weight?: number;
            /**
             * Format: int32
             * @description Maximum during a burst, in normalised operations per second, above `max_iops` and up to 1 000 000 000; needs `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Length of a burst after idle time, in seconds, 1 to 3600.
             */
            burst_s?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `qos_policy`: keys that are absent stay as they are, null removes a key. */
        QosPolicyConfigPatch: {
            /** @description Unique among QoS policies. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description `dedicated`: each disk of the policy has these limits. `aggregated`: all its disks on a store have them together. */
            kind?: null | components["schemas"]["QosPolicyKind"];
            /** @description True: the policy exists on all nodes of the cluster with the same limits, and a change on one node applies to all. If it is aggregated, its disks on a shared store have the limits together across nodes. Without effect outside of a cluster. */
            shared?: boolean | null;
            /**
             * Format: int32
             * @description Minimum of normalised operations per second, guaranteed while there is demand, 1 to 1 000 000 000; none if absent.
             */
            min_iops?: number | null;
            /**
             * Format: int32
             * @description Maximum of normalised operations per second, 1 to 1 000 000 000; no limit if absent. In any interval, 20 ms of it (80 ms with a minimum) and one request may come on top, and a burst.
             */
            max_iops?: number | null;
            /** @description Maximum of bytes per second, 512 to 1 TiB; no limit if absent. The same comes on top as with `max_iops`, except a burst. */
            max_bytes_per_s?: null | number | string;
            /**
             * Format: int32
             * @description Share of the capacity beyond all minimums, in proportion to the weights of others, 1 to 10 000.
             */
            weight?: number | null;
            /**
             * Format: int32
             * @description Maximum during a burst, in normalised operations per second, above `max_iops` and up to 1 000 000 000; needs `burst_s`.
             */
            burst_iops?: number | null;
            /**
             * Format: int32
             * @description Length of a burst after idle time, in seconds, 1 to 3600.
             */
            burst_s?: number | null;
        };
        /**
         * @description Whether disks of a policy each have its limits, or all together.
         * @enum {string}
         */
        QosPolicyKind: "dedicated" | "aggregated";
        /** @description What a host has of a policy that disks of several nodes have together. */
        QosPolicyPart: {
            /** @description Of disks on this store. */
            store: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Normalised operations per second that they get together whenever they want them.
             */
            min_iops: number;
            max?: null | components["schemas"]["ClusterCap"];
        };
        /** @description A QoS policy as it would be. */
        QosPolicyProposal: {
            /** @description Its name. */
            name: components["schemas"]["Name"];
            kind?: null | components["schemas"]["QosPolicyKind"];
            /** @description Its limits, all of them. */
            limits?: components["schemas"]["DiskQos"];
        };
        /** @description A QoS policy. */
        QosPolicyStatus: {
            /** @description As desired. */
            config: components["schemas"]["QosPolicyConfig"];
            /** @description The disks that have it, by name. */
            disks: components["schemas"]["Name"][];
            /**
             * Format: int64
             * @description Normalised operations per second that it promises, on all stores together.
             */
            promised_iops: number;
            /**
             * Format: int64
             * @description Normalised operations per second that its disks here got in the last 5 s.
             */
            delivered_iops: number;
            /** @description What this host has of it, by store, of one that disks of several nodes have together. */
            parts?: components["schemas"]["QosPolicyPart"][];
        };
        /** @description One thing that would be different. */
        QosProposal: {
            /** @description A disk with other limits or in another store, or a new one. */
            disk: components["schemas"]["DiskProposal"];
        } | {
            /** @description A QoS policy with other limits, or a new one. */
            qos_policy: components["schemas"]["QosPolicyProposal"];
        } | {
            /** @description A store with another capability. */
            store: components["schemas"]["StoreProposal"];
        } | {
            /** @description A disk that would not be there. */
            without_disk: components["schemas"]["Name"];
        };
        /** @description Share of time by a limiting factor of a disk. */
        QosTimeShare: {
            /** @description The factor. */
            factor: components["schemas"]["QosLimitingFactor"];
            /**
             * Format: int32
             * @description Share of the window's time, in parts per million.
             */
            share_ppm: number;
        };
        /** @description A queue and the processor that owns it. */
        QueueStatus: {
            /**
             * @description `NIC/rx/0`, `NIC/tx/0`, seen from the guest as Hyper-V and Linux do:
             *     `rx` carries frames to it.
             */
            id: string;
            /** @description The NIC, uplink or switch (for its host NIC) it belongs to. */
            port: string;
            /**
             * Format: int32
             * @description Owning processor.
             */
            processor: number;
            /**
             * Format: int64
             * @description Frames carried since it was made.
             */
            frames: number;
            /**
             * Format: int64
             * @description Bytes carried since it was made.
             */
            bytes: number;
            /**
             * Format: int64
             * @description Frames lost because the other side had no room.
             */
            full: number;
            /**
             * Format: int64
             * @description Times it was handed over to another processor.
             */
            moves: number;
        };
        /**
         * @description How much an event matters.
         * @enum {string}
         */
        Severity: "info" | "warning" | "error";
        /**
         * @description `POST /1.0/disks/{name}/snapshot`: what the disk has now stays in its file, and what is
         *     written from now on goes to a new differencing file.
         */
        SnapshotDiskRequest: {
            /** @description The new file, relative to the store's path; it is not there yet. */
            file: components["schemas"]["StoreFile"];
        };
        /**
         * @description Who listens on a vhost-user socket.
         * @enum {string}
         */
        SocketMode: "server" | "client";
        /**
         * @description A network adapter with SR-IOV (its physical function), whether or not anything is desired
         *     of it.
         */
        SriovAdapter: {
            /** @description PCI address of its physical function. */
            address: string;
            /** @description Its network device. */
            device?: string | null;
            /** @description The network namespace of the device, if it is another than the daemon's. */
            netns?: string | null;
            pf?: null | components["schemas"]["Name"];
            /** @description Its driver. */
            driver?: string | null;
            /** @description Whether VMs could be given its virtual functions. */
            support: components["schemas"]["SriovSupport"];
            /** @description What is to be done about that. */
            remedy?: string | null;
            /**
             * Format: int32
             * @description Virtual functions that it can have.
             */
            vfs_supported: number;
            /**
             * Format: int32
             * @description Virtual functions that it has.
             */
            vfs_enabled: number;
            /**
             * Format: int32
             * @description Virtual functions that somebody uses.
             */
            vfs_in_use: number;
            /**
             * Format: int32
             * @description Its IOMMU group.
             */
            iommu_group?: number | null;
            /**
             * Format: int32
             * @description The NUMA node that it is near.
             */
            numa_node?: number | null;
            /** @description The virtual functions that it has. */
            vfs: components["schemas"]["VfStatus"][];
        };
        /**
         * @description Whether VMs could be given an adapter's virtual functions; if not, the first reason. The
         *     words are those of Hyper-V's `SriovSupport`.
         * @enum {string}
         */
        SriovSupport: "Supported" | "MissingPfDriver" | "NoVfBarSpace" | "NoBusResources" | "NoIoMmuSupport" | "MissingAcs";
        /** @description A NIC whose frames arrive on a receive queue of their own. */
        SteeredNic: {
            /** @description Which. */
            nic: components["schemas"]["Name"];
            /** @description The destination of these frames. */
            mac: string;
            /**
             * Format: int32
             * @description Their VLAN; absent if the device's rule looks at none.
             */
            vlan?: number | null;
            /**
             * Format: int32
             * @description The receive queue, counted from 0.
             */
            queue: number;
        };
        /**
         * @description Who gives frames to the queues of NICs.
         * @enum {string}
         */
        SteeringMode: "hardware" | "software";
        /** @description Where frames that arrive at an uplink are classified by destination address and VLAN. */
        SteeringStatus: {
            /** @description Who does it. */
            mode: components["schemas"]["SteeringMode"];
            /**
             * Format: int32
             * @description Receive queues of the uplink.
             */
            queues: number;
            /** @description Whether frames of other NICs stay off the queues that NICs have to themselves. */
            exclusive: boolean;
            /** @description Why the device does it for none, or not for all. */
            reason?: string | null;
            /** @description The NICs that have a receive queue to themselves, by queue. */
            nics?: components["schemas"]["SteeredNic"][];
        };
        /**
         * @description How a guest is asked to turn itself off.
         * @enum {string}
         */
        StopBy: "auto" | "power-button" | "agent";
        /**
         * @description `POST /1.0/vms/{name}/stop`: the VM's guest is asked to turn itself off. The body may be
         *     absent.
         */
        StopVmRequest: {
            /**
             * Format: int64
             * @description Seconds that it is given, 1 to 3600.
             * @default 60
             */
            seconds?: number;
            /**
             * @description Whether it is ended then, as if its plug was pulled.
             * @default false
             */
            force?: boolean;
            /** @default auto */
            by?: components["schemas"]["StopBy"];
        };
        /**
         * @description Whether a store or a disk is as desired.
         * @enum {string}
         */
        StorageState: "ready" | "working" | "failed" | "stalled" | "full" | "away";
        /** @description `capability_iops` of a store: a number, or the word `measure`. */
        StoreCapability: number | components["schemas"]["MeasureWord"];
        /** @description `[[store]]`: where disks are, with one queue for all of them. */
        StoreConfig: {
            /** @description Unique among stores. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Absolute path of a directory, in which disks are files, or of a block device, which one disk has all of. A change replaces the resource. */
            path: string;
            /** @description Normalised operations per second that it can do, 1 to 1 000 000 000, or `measure`: what `suimon store measure` found out last. If absent, and before it was measured, that is not known, and minimums are promised only with force. */
            capability_iops?: null | number | "measure";
            /**
             * @description Bytes that count as one operation, a power of two from 512 B to 1 MiB. A change replaces the resource.
             * @default 8192
             */
            normalization_bytes?: number | string;
            /**
             * Format: int32
             * @description Requests that the device gets at a time at most, 1 to 1024. A change replaces the resource.
             * @default 256
             */
            depth_max?: number;
            /**
             * @description Whether other nodes have the same directory as a store of this name, by a file system that all of them see. Disks in it are handed over with their VM and not copied; that it is the same is proved before. It takes locks on files that hold between nodes.
             * @default false
             */
            shared?: boolean;
            /**
             * Format: int32
             * @description Normalised operations per second that this host's disks in it may do together when the cluster was not heard of for half a minute, 1 to 1 000 000 000; what is reserved for the host if absent or less. It counts as a promise, and where it does not fit it is not in force.
             */
            fallback_iops?: number | null;
            /**
             * Format: int32
             * @description Used part of the store, in percent, from which on a warning says that it is nearly full (event 6152), 1 to 100.
             */
            full_warning_percent?: number;
        };
        /** @description Merge patch (RFC 7386) of `store`: keys that are absent stay as they are, null removes a key. */
        StoreConfigPatch: {
            /** @description Unique among stores. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Absolute path of a directory, in which disks are files, or of a block device, which one disk has all of. A change replaces the resource. */
            path?: string;
            /** @description Normalised operations per second that it can do, 1 to 1 000 000 000, or `measure`: what `suimon store measure` found out last. If absent, and before it was measured, that is not known, and minimums are promised only with force. */
            capability_iops?: null | number | "measure";
            /** @description Bytes that count as one operation, a power of two from 512 B to 1 MiB. A change replaces the resource. */
            normalization_bytes?: null | number | string;
            /**
             * Format: int32
             * @description Requests that the device gets at a time at most, 1 to 1024. A change replaces the resource.
             */
            depth_max?: number | null;
            /** @description Whether other nodes have the same directory as a store of this name, by a file system that all of them see. Disks in it are handed over with their VM and not copied; that it is the same is proved before. It takes locks on files that hold between nodes. */
            shared?: boolean | null;
            /**
             * Format: int32
             * @description Normalised operations per second that this host's disks in it may do together when the cluster was not heard of for half a minute, 1 to 1 000 000 000; what is reserved for the host if absent or less. It counts as a promise, and where it does not fit it is not in force.
             */
            fallback_iops?: number | null;
            /**
             * Format: int32
             * @description Used part of the store, in percent, from which on a warning says that it is nearly full (event 6152), 1 to 100.
             */
            full_warning_percent?: number | null;
        };
        /** @description What a store did when requests last waited for it. */
        StoreEstimate: {
            /**
             * Format: int64
             * @description Normalised operations per second, of the load that there was.
             */
            iops: number;
            /**
             * Format: int64
             * @description How long ago that was, in ms.
             */
            age_ms: number;
        };
        /** @description A file by its path below its store's. */
        StoreFile: string;
        /** @description What a measurement of a store found out. */
        StoreMeasurement: {
            /**
             * Format: int64
             * @description Normalised operations per second that it can do: the least of all patterns.
             */
            iops: number;
            /**
             * Format: int64
             * @description When it ended, in milliseconds since 1970-01-01 UTC.
             */
            measured_unix_ms: number;
            /**
             * Format: int64
             * @description For how many seconds each pattern was measured.
             */
            seconds: number;
            /** @description What it did under each pattern. A block device is only read. */
            patterns: components["schemas"]["StorePatternFigure"][];
            /**
             * Format: int64
             * @description Bytes that requests went to.
             */
            file_bytes: number;
            /** @description Whether they went past the host's page cache. */
            direct: boolean;
            /**
             * Format: int64
             * @description Normalised operations per second that its own disks did beside, in the last 5 s.
             */
            others_iops: number;
        };
        /**
         * @description What a store was measured with.
         * @enum {string}
         */
        StorePattern: "random-read" | "random-write" | "random-mixed";
        /** @description What a store did under one pattern. */
        StorePatternFigure: {
            /** @description The pattern. */
            pattern: components["schemas"]["StorePattern"];
            /**
             * Format: int64
             * @description Operations per second of the size that counts as one.
             */
            iops: number;
            /**
             * Format: int32
             * @description Requests that the device had at a time, as Storage QoS found best.
             */
            depth: number;
            /**
             * Format: int64
             * @description Half of the requests took this long at most, in ns.
             */
            latency_ns_p50: number;
            /**
             * Format: int64
             * @description All but one of a hundred took this long at most, in ns.
             */
            latency_ns_p99: number;
        };
        /** @description What a store would promise, or promises: the arithmetic. */
        StorePromises: {
            /** @description The store. */
            store: components["schemas"]["Name"];
            /** @description Minimums on it; one of an aggregated policy counts once. */
            minimums: number;
            /**
             * Format: int64
             * @description What they come to, in normalised operations per second.
             */
            minimums_iops: number;
            /**
             * Format: int64
             * @description What the store can do, in normalised operations per second; absent if that is not
             *     known.
             */
            capability_iops?: number | null;
            /**
             * Format: int64
             * @description What of that may be promised.
             */
            promisable_iops: number;
            /** @description Whether the minimums fit that. */
            fits: boolean;
            /** @description The arithmetic in words, and what to do where they do not fit. */
            text: string;
        };
        /** @description A store as it would be. */
        StoreProposal: {
            /** @description Its name; it exists. */
            name: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description Normalised operations per second that it could do, 1 to 1 000 000 000.
             */
            capability_iops: number;
        };
        /** @description A store. */
        StoreStatus: {
            /** @description As desired. */
            config: components["schemas"]["StoreConfig"];
            /** @description Whether it is as desired. */
            state: components["schemas"]["StorageState"];
            /** @description Why it is not. */
            reason?: string | null;
            /**
             * Format: int64
             * @description Bytes of the file system or device; absent while that is not known.
             */
            total_bytes?: number | null;
            /**
             * Format: int64
             * @description Bytes of these that nothing is in; absent for a block device.
             */
            free_bytes?: number | null;
            /** @description Whether more of it is used than its `full_warning_percent`. */
            nearly_full?: boolean;
            /**
             * Format: int64
             * @description Bytes of its disks as their guests see them, in sum.
             */
            virtual_bytes?: number;
            /**
             * Format: int64
             * @description Bytes that the files of its disks take, in sum. Parents are not counted.
             */
            allocated_bytes?: number;
            /**
             * Format: int64
             * @description `virtual_bytes` in percent of `total_bytes`, rounded up; absent while that is not known. Above 100
             *     the disks can find the store full.
             */
            overcommit_percent?: number | null;
            /**
             * Format: int64
             * @description Normalised operations per second that it is taken to be able to do; absent while
             *     that is not known.
             */
            capability_iops?: number | null;
            capability_source?: null | components["schemas"]["CapabilitySource"];
            measured?: null | components["schemas"]["StoreMeasurement"];
            estimate?: null | components["schemas"]["StoreEstimate"];
            /**
             * Format: int64
             * @description What all minimums on it come to, in normalised operations per second.
             */
            promised_iops: number;
            /**
             * Format: int64
             * @description How much of its capability that is, in percent, rounded up; absent while its
             *     capability is not known.
             */
            promised_percent?: number | null;
            /** @description Disks in it. */
            disks: number;
            /**
             * Format: int64
             * @description Normalised operations per second that it did in the last 5 s.
             */
            delivered_iops: number;
            /**
             * Format: int64
             * @description What the device takes for a request now, in ns; absent if it had none lately.
             */
            latency_ns?: number | null;
            /**
             * Format: int32
             * @description Requests that the device has.
             */
            depth: number;
            /**
             * Format: int32
             * @description Requests that it gets at a time at most now, `depth_max` or fewer.
             */
            depth_allowed: number;
        };
        /**
         * @description A file that the node which a VM leaves has made in a store, and has open: the node that finds
         *     it in its own store of that name sees the same one.
         */
        StoreToken: {
            /** @description The store. */
            store: components["schemas"]["Name"];
            /** @description What the file's name is made of, 32 hexadecimal digits; drawn at random. */
            token: string;
        };
        /** @description `[[switch]]`. */
        SwitchConfig: {
            /** @description Unique among switches. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Who can reach whom. */
            kind: components["schemas"]["SwitchKind"];
            /** @description The uplink of an external switch, or the team; only there, and always there. */
            uplink?: null | components["schemas"]["Name"];
            /** @description Device name of the host NIC of an internal switch; the switch's name if absent. */
            host_device?: string | null;
            /** @description What the host and we may leave to each other at the host NIC of an internal switch. */
            host_offload?: components["schemas"]["OffloadConfig"];
            /**
             * Format: int32
             * @description Seconds after which a learned address that was not seen again is forgotten, 10 to 1 000 000.
             * @default 300
             */
            ageing_s?: number;
            /**
             * @description Whether NICs on it may have virtual functions of the adapter that its uplink is, beside their path through the switch. Needs a `[[pf]]` that describes the uplink's device.
             * @default false
             */
            iov?: boolean;
        };
        /** @description Merge patch (RFC 7386) of `switch`: keys that are absent stay as they are, null removes a key. */
        SwitchConfigPatch: {
            /** @description Unique among switches. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Who can reach whom. */
            kind?: components["schemas"]["SwitchKind"];
            /** @description The uplink of an external switch, or the team; only there, and always there. */
            uplink?: null | components["schemas"]["Name"];
            /** @description Device name of the host NIC of an internal switch; the switch's name if absent. */
            host_device?: string | null;
            /** @description What the host and we may leave to each other at the host NIC of an internal switch. */
            host_offload?: null | components["schemas"]["OffloadConfigPatch"];
            /**
             * Format: int32
             * @description Seconds after which a learned address that was not seen again is forgotten, 10 to 1 000 000.
             */
            ageing_s?: number | null;
            /** @description Whether NICs on it may have virtual functions of the adapter that its uplink is, beside their path through the switch. Needs a `[[pf]]` that describes the uplink's device. */
            iov?: boolean | null;
        };
        /**
         * @description Who can reach whom.
         * @enum {string}
         */
        SwitchKind: "private" | "internal" | "external";
        /** @description A switch. */
        SwitchStatus: {
            /** @description As desired. */
            config: components["schemas"]["SwitchConfig"];
            /** @description Whether it is as desired. */
            condition: components["schemas"]["Condition"];
            /** @description Names of the NICs on it. */
            nics: components["schemas"]["Name"][];
            host_nic?: null | components["schemas"]["PortCounters"];
            /** @description Offloads of the host NIC of an internal switch; empty for other switches. */
            host_nic_offloads?: components["schemas"]["OffloadStatus"][];
            /** @description Addresses known on it. */
            addresses: number;
        };
        /**
         * @description By what a team chooses the member that a frame leaves by.
         * @enum {string}
         */
        TeamAlgorithm: "hyper-v-port" | "transport-ports" | "ip-addresses" | "mac-addresses" | "dynamic";
        /** @description `[[team]]`. */
        TeamConfig: {
            /** @description Unique among teams and uplinks; a switch names either as its `uplink`. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Names of uplinks, 1 to 32, each once and in no other team. Where nothing else decides, the earlier is preferred. */
            members: components["schemas"]["Name"][];
            /** @description What the switch on the other side knows of the team. */
            mode: components["schemas"]["TeamMode"];
            /**
             * @description By what the team chooses the member that a frame leaves by.
             * @default dynamic
             */
            algorithm?: components["schemas"]["TeamAlgorithm"];
            /** @description lacp: how often the switch on the other side is to send LACPDUs, every 30 s (`slow`) or every second (`fast`); it is given up after three that did not come. `slow` if absent. */
            lacp_timer?: null | components["schemas"]["LacpTimer"];
            /** @description lacp: whether we send LACPDUs to a switch that does not; true if absent. Of two ends one must. */
            lacp_active?: boolean | null;
            /**
             * Format: int32
             * @description lacp: our priority, 0 to 65 535; 32 768 if absent. The end with the lower number decides which links are used.
             */
            lacp_system_priority?: number | null;
            /**
             * Format: int32
             * @description With fewer usable members the team is down; 1 to the number of members, without the standby.
             * @default 1
             */
            min_links?: number;
            /** @description switch-independent: the member that is used only while another cannot be; none if absent. */
            standby?: null | components["schemas"]["Name"];
            /** @description switch-independent: the member that receives, if it can be used; the team chooses one if absent. */
            primary?: null | components["schemas"]["Name"];
            /** @description Which processors work off its queues. */
            vmq?: components["schemas"]["VmqConfig"];
        };
        /** @description Merge patch (RFC 7386) of `team`: keys that are absent stay as they are, null removes a key. */
        TeamConfigPatch: {
            /** @description Unique among teams and uplinks; a switch names either as its `uplink`. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Names of uplinks, 1 to 32, each once and in no other team. Where nothing else decides, the earlier is preferred. */
            members?: components["schemas"]["Name"][];
            /** @description What the switch on the other side knows of the team. */
            mode?: components["schemas"]["TeamMode"];
            /** @description By what the team chooses the member that a frame leaves by. */
            algorithm?: null | components["schemas"]["TeamAlgorithm"];
            /** @description lacp: how often the switch on the other side is to send LACPDUs, every 30 s (`slow`) or every second (`fast`); it is given up after three that did not come. `slow` if absent. */
            lacp_timer?: null | components["schemas"]["LacpTimer"];
            /** @description lacp: whether we send LACPDUs to a switch that does not; true if absent. Of two ends one must. */
            lacp_active?: boolean | null;
            /**
             * Format: int32
             * @description lacp: our priority, 0 to 65 535; 32 768 if absent. The end with the lower number decides which links are used.
             */
            lacp_system_priority?: number | null;
            /**
             * Format: int32
             * @description With fewer usable members the team is down; 1 to the number of members, without the standby.
             */
            min_links?: number | null;
            /** @description switch-independent: the member that is used only while another cannot be; none if absent. */
            standby?: null | components["schemas"]["Name"];
            /** @description switch-independent: the member that receives, if it can be used; the team chooses one if absent. */
            primary?: null | components["schemas"]["Name"];
            /** @description Which processors work off its queues. */
            vmq?: null | components["schemas"]["VmqConfigPatch"];
        };
        /**
         * @description What a member does in its team.
         * @enum {string}
         */
        TeamMemberState: "active" | "waiting" | "failed";
        /** @description A member of a team. */
        TeamMemberStatus: {
            /** @description The uplink. */
            uplink: components["schemas"]["Name"];
            /** @description What it does. */
            state: components["schemas"]["TeamMemberState"];
            /** @description Why. */
            reason: string;
            /** @description Whether its link carries frames. */
            link_up: boolean;
            /**
             * Format: int32
             * @description Megabits per second; absent if the device does not say, then it counts as the
             *     slowest of the team that does.
             */
            speed_mbps?: number | null;
            /** @description Whether it receives where one member does. */
            primary: boolean;
            /** @description Whether it is the standby. */
            standby: boolean;
            /**
             * Format: int64
             * @description Bits per second that came in by it in the last second.
             */
            rx_bps: number;
            /**
             * Format: int64
             * @description Bits per second that went out by it in the last second.
             */
            tx_bps: number;
            /**
             * Format: int32
             * @description Its share of what came in by the team in the last second, in parts per million.
             */
            rx_share_ppm: number;
            /**
             * Format: int32
             * @description Its share of what went out by the team in the last second, in parts per million.
             */
            tx_share_ppm: number;
            /**
             * Format: int32
             * @description Its share of the flows that are chosen for by hash or load, in parts per million.
             */
            flows_share_ppm: number;
            /**
             * Format: int32
             * @description NICs that live on it; 0 where they do not live on one member.
             */
            nics: number;
            /** @description Counters since its device was opened. */
            counters: components["schemas"]["PortCounters"];
            lacp?: null | components["schemas"]["LacpMemberStatus"];
        };
        /**
         * @description What the switch on the other side of a team knows of it.
         * @enum {string}
         */
        TeamMode: "static" | "lacp" | "switch-independent";
        /** @description A team. */
        TeamStatus: {
            /** @description As desired. */
            config: components["schemas"]["TeamConfig"];
            switch?: null | components["schemas"]["Name"];
            /** @description Whether it is as desired, and has as many usable members as it needs. */
            condition: components["schemas"]["Condition"];
            /** @description Counters of the team as one port of the switch. */
            counters: components["schemas"]["PortCounters"];
            /**
             * Format: int32
             * @description Largest IP packet now: the smallest of its members'.
             */
            mtu: number;
            /**
             * Format: int64
             * @description Megabits per second of the members that are active; those of unknown speed count
             *     nothing.
             */
            speed_mbps: number;
            lacp_partner?: null | components["schemas"]["LacpPartnerStatus"];
            /** @description Members, in the order in which they are configured. */
            members: components["schemas"]["TeamMemberStatus"][];
        };
        /**
         * @description What `suimon top` shows of a disk: counters since it was opened, and what it got in the
         *     last 5 s.
         */
        TopDisk: {
            /** @description Its name. */
            name: components["schemas"]["Name"];
            /** @description The store it is in. */
            store: components["schemas"]["Name"];
            /** @description Whether it is as desired. */
            state: components["schemas"]["StorageState"];
            /**
             * Format: int64
             * @description Reads that were answered.
             */
            reads: number;
            /**
             * Format: int64
             * @description Their bytes.
             */
            read_bytes: number;
            /**
             * Format: int64
             * @description Writes that were answered.
             */
            writes: number;
            /**
             * Format: int64
             * @description Their bytes.
             */
            written_bytes: number;
            /**
             * Format: int64
             * @description Flushes, discards and writes of zeros that were answered.
             */
            others: number;
            /**
             * Format: int64
             * @description Time from when each of all these was seen to when it was answered, in ns, in sum;
             *     waits for limits included.
             */
            latency_ns: number;
            last_5_s?: null | components["schemas"]["QosDelivery"];
        };
        /** @description What `suimon top` shows of a NIC or uplink. */
        TopPort: {
            /** @description Name of the NIC or uplink. */
            name: components["schemas"]["Name"];
            switch?: null | components["schemas"]["Name"];
            /** @description Whether it is as desired. */
            health: components["schemas"]["Health"];
            /**
             * Format: int64
             * @description Frames that came in from it.
             */
            rx_frames: number;
            /**
             * Format: int64
             * @description Bytes that came in from it.
             */
            rx_bytes: number;
            /**
             * Format: int64
             * @description Frames that went out to it.
             */
            tx_frames: number;
            /**
             * Format: int64
             * @description Bytes that went out to it.
             */
            tx_bytes: number;
            /**
             * Format: int64
             * @description Frames from it that went nowhere.
             */
            rx_dropped: number;
            /**
             * Format: int64
             * @description Frames meant for it that did not go out.
             */
            tx_dropped: number;
        };
        /** @description What `suimon top` shows of power. */
        TopPower: {
            /** @description The plan, if one is desired. */
            plan?: string | null;
            /** @description How much of it was so when it was last applied. */
            effect: components["schemas"]["PowerEffect"];
            /**
             * Format: int64
             * @description Microjoules that packages and memory took since the daemon first read their counters;
             *     absent where they are not known.
             */
            energy_uj?: number | null;
            /**
             * Format: int64
             * @description When they were read, on the clock of `time_monotonic_ns`.
             */
            read_monotonic_ns?: number;
            /** @description Why energy is not known. */
            lacking?: string | null;
        };
        /** @description `GET /1.0/top`: all counters at one moment. Rates are the differences of two. */
        TopSnapshot: {
            /**
             * Format: int64
             * @description When they were read, in milliseconds since 1970-01-01 UTC.
             */
            time_unix_ms: number;
            /**
             * Format: int64
             * @description When they were read, in ns on a clock that only goes forward, which is the
             *     one to divide by.
             */
            time_monotonic_ns: number;
            /** @description NICs, by name. */
            nics: components["schemas"]["TopPort"][];
            /** @description Uplinks, by name. */
            uplinks: components["schemas"]["TopPort"][];
            /** @description Teams, by name. */
            teams?: components["schemas"]["TopTeam"][];
            /** @description Disks, by name. */
            disks?: components["schemas"]["TopDisk"][];
            /** @description Processors, by number. */
            processors: components["schemas"]["ProcessorStatus"][];
            /** @description Power and energy. */
            power?: components["schemas"]["TopPower"];
        };
        /** @description What `suimon top` shows of a team. What it carries is what its members carry. */
        TopTeam: {
            /** @description Its name. */
            name: components["schemas"]["Name"];
            switch?: null | components["schemas"]["Name"];
            /** @description Whether it is as desired. */
            health: components["schemas"]["Health"];
            /** @description The uplinks it is made of, as they are configured. */
            members: components["schemas"]["Name"][];
        };
        /**
         * @description The VLANs a trunk port carries, in writing order: numbers and ranges, such as
         *     `[10, "20-29"]`. Overlaps are refused when the host file is validated.
         */
        TrunkVlans: components["schemas"]["VlanRangeText"][];
        /** @description `[[uplink]]`. */
        UplinkConfig: {
            /** @description Unique among uplinks and teams. It cannot be changed. */
            name: components["schemas"]["Name"];
            /** @description Device name, 1 to 15 bytes. A change replaces the resource. */
            device: string;
            /**
             * @description How frames reach it. A change replaces the resource.
             * @default af_packet
             */
            driver?: components["schemas"]["UplinkDriver"];
            /**
             * Format: int32
             * @description Queue pairs, 1 to 64. With `af_xdp` as many as the device receives with (`ethtool -l`). A change replaces the resource.
             * @default 1
             */
            queues?: number;
            /**
             * Format: int32
             * @description Largest IP packet, 68 to 9216 bytes; the device's own if absent.
             */
            mtu?: number | null;
            /** @description With `af_xdp`: the addresses that the host has on the device. ARP and neighbour discovery that ask for them, and frames to the device's own MAC address, stay with the host. If absent, all but what concerns the link goes to the switch. */
            host_addresses?: string[];
            /** @description What we and the device may leave to each other. */
            offload?: components["schemas"]["OffloadConfig"];
            /** @description Which processors work off its queues. A team's holds for its members. */
            vmq?: components["schemas"]["VmqConfig"];
        };
        /** @description Merge patch (RFC 7386) of `uplink`: keys that are absent stay as they are, null removes a key. */
        UplinkConfigPatch: {
            /** @description Unique among uplinks and teams. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /** @description Device name, 1 to 15 bytes. A change replaces the resource. */
            device?: string;
            /** @description How frames reach it. A change replaces the resource. */
            driver?: null | components["schemas"]["UplinkDriver"];
            /**
             * Format: int32
             * @description Queue pairs, 1 to 64. With `af_xdp` as many as the device receives with (`ethtool -l`). A change replaces the resource.
             */
            queues?: number | null;
            /**
             * Format: int32
             * @description Largest IP packet, 68 to 9216 bytes; the device's own if absent.
             */
            mtu?: number | null;
            /** @description With `af_xdp`: the addresses that the host has on the device. ARP and neighbour discovery that ask for them, and frames to the device's own MAC address, stay with the host. If absent, all but what concerns the link goes to the switch. */
            host_addresses?: string[] | null;
            /** @description What we and the device may leave to each other. */
            offload?: null | components["schemas"]["OffloadConfigPatch"];
            /** @description Which processors work off its queues. A team's holds for its members. */
            vmq?: null | components["schemas"]["VmqConfigPatch"];
        };
        /**
         * @description How frames reach an uplink's device.
         * @enum {string}
         */
        UplinkDriver: "af_packet" | "af_xdp" | "tap";
        /** @description An uplink. */
        UplinkStatus: {
            /** @description As desired. */
            config: components["schemas"]["UplinkConfig"];
            switch?: null | components["schemas"]["Name"];
            /** @description Whether it is as desired. */
            condition: components["schemas"]["Condition"];
            /** @description Counters. */
            counters: components["schemas"]["PortCounters"];
            /**
             * Format: int32
             * @description Largest IP packet now.
             */
            mtu: number;
            /** @description The device's address. */
            mac?: string | null;
            /** @description Offloads. */
            offloads?: components["schemas"]["OffloadStatus"][];
            /** @description What the device does itself, as the kernel says now. */
            device?: components["schemas"]["DeviceFeaturesStatus"];
            af_xdp?: null | components["schemas"]["XdpStatus"];
            steering?: null | components["schemas"]["SteeringStatus"];
        };
        /** @description `[[pf.vf]]`: how an adapter has one of its virtual functions. */
        VfConfig: {
            /**
             * Format: int32
             * @description Its number, 0 to one less than `vfs`.
             */
            index: number;
            /** @description Its address, which whoever has it cannot change unless it is trusted. */
            mac?: string | null;
            /**
             * Format: int32
             * @description The VLAN that all of its frames are of; whoever has it sees no tags.
             */
            vlan?: number | null;
            /** @description Whether the adapter drops what it sends from other addresses. */
            spoof_check?: boolean | null;
            /** @description Whether it may change its address and receive what is not for it. */
            trust?: boolean | null;
            /**
             * Format: int64
             * @description Bits per second that it can always send, a multiple of 1 000 000. Few adapters have that.
             */
            bandwidth_min_bps?: number | null;
            /**
             * Format: int64
             * @description Bits per second that it may send, a multiple of 1 000 000.
             */
            bandwidth_max_bps?: number | null;
            /** @description What it is told of its link: how the adapter's is, that it is up, or that it is down. */
            link_state?: null | components["schemas"]["VfLinkState"];
        };
        /**
         * @description What a VF is told of its link.
         * @enum {string}
         */
        VfLinkState: "auto" | "enable" | "disable";
        /** @description A virtual function. */
        VfStatus: {
            /**
             * Format: int32
             * @description Its number among those of its adapter.
             */
            index: number;
            /** @description Its PCI address. */
            address: string;
            /** @description Its driver; `vfio-pci` where VMs get it. */
            driver?: string | null;
            /**
             * Format: int32
             * @description Its IOMMU group.
             */
            iommu_group?: number | null;
            /** @description Its network device, where one can be seen. */
            device?: string | null;
            /** @description The network namespace of the device, if it is another than the daemon's. */
            netns?: string | null;
            /** @description Who uses it, in words. */
            used_by?: string | null;
            /** @description Its address as the adapter has it; absent while nobody gave it one. */
            mac?: string | null;
            /**
             * Format: int32
             * @description The VLAN that its frames are of.
             */
            vlan?: number | null;
            /**
             * @description Whether the adapter drops what it sends from other addresses; absent if the driver
             *     does not tell, like all that follows.
             */
            spoof_check?: boolean | null;
            /** @description Whether it may change its address and receive what is not for it. */
            trust?: boolean | null;
            /**
             * Format: int64
             * @description Bits per second that it can always send; absent if nothing is promised.
             */
            bandwidth_min_bps?: number | null;
            /**
             * Format: int64
             * @description Bits per second that it may send; absent if as many as it can.
             */
            bandwidth_max_bps?: number | null;
            link_state?: null | components["schemas"]["VfLinkState"];
        };
        VlanRangeText: number | string;
        /**
         * @description What runs a VM's instructions.
         * @enum {string}
         */
        VmAccelerator: "auto" | "kvm" | "tcg";
        /** @description `[[vm]]`: a VM that the daemon starts. */
        VmConfig: {
            /** @description Unique among VMs. It cannot be changed. */
            name: components["schemas"]["Name"];
            /**
             * Format: int32
             * @description Virtual CPUs, 1 to 255.
             * @default 1
             */
            cpus?: number;
            /**
             * Format: int32
             * @description Virtual CPUs that it can have when some are added while it runs; `cpus` if absent. A change takes effect when a VM starts.
             */
            cpus_max?: number | null;
            /** @description Its memory, like `"2 GiB"`, a multiple of 1 MiB from 16 MiB on. A change takes effect when a VM starts. */
            memory_bytes: number | string;
            /**
             * @description Whether its memory is of huge pages, which the host has to have set aside. A change takes effect when a VM starts.
             * @default false
             */
            huge_pages?: boolean;
            /**
             * @description What it starts with where it has no `kernel`. A change takes effect when a VM starts.
             * @default bios
             */
            firmware?: components["schemas"]["VmFirmware"];
            /** @description Absolute path of a kernel that it starts with, without firmware's help. A change takes effect when a VM starts. */
            kernel?: string | null;
            /** @description The kernel's initramfs. A change takes effect when a VM starts. */
            initrd?: string | null;
            /** @description The kernel's command line; `console=ttyS0` lets it use the serial console. A change takes effect when a VM starts. */
            command_line?: string | null;
            /** @description Its NICs, in the order in which the guest finds them. Each is of one VM, and needs no socket of its own then. */
            nics?: components["schemas"]["Name"][];
            /** @description Its disks, in the order in which firmware tries to start from them. Each is of one VM, and needs no socket of its own then. */
            disks?: components["schemas"]["Name"][];
            /** @description Absolute path of the image in its CD drive; it has no drive if absent. A change takes effect when a VM starts. */
            cdrom?: string | null;
            /**
             * @description What runs its instructions. A change takes effect when a VM starts.
             * @default auto
             */
            accelerator?: components["schemas"]["VmAccelerator"];
            /**
             * @description Whether it is started when the host is, that is with the first daemon after that.
             * @default false
             */
            autostart?: boolean;
        };
        /** @description Merge patch (RFC 7386) of `vm`: keys that are absent stay as they are, null removes a key. */
        VmConfigPatch: {
            /** @description Unique among VMs. It cannot be changed. */
            name?: components["schemas"]["Name"];
            /**
             * Format: int32
             * @description Virtual CPUs, 1 to 255.
             */
            cpus?: number | null;
            /**
             * Format: int32
             * @description Virtual CPUs that it can have when some are added while it runs; `cpus` if absent. A change takes effect when a VM starts.
             */
            cpus_max?: number | null;
            /** @description Its memory, like `"2 GiB"`, a multiple of 1 MiB from 16 MiB on. A change takes effect when a VM starts. */
            memory_bytes?: number | string;
            /** @description Whether its memory is of huge pages, which the host has to have set aside. A change takes effect when a VM starts. */
            huge_pages?: boolean | null;
            /** @description What it starts with where it has no `kernel`. A change takes effect when a VM starts. */
            firmware?: null | components["schemas"]["VmFirmware"];
            /** @description Absolute path of a kernel that it starts with, without firmware's help. A change takes effect when a VM starts. */
            kernel?: string | null;
            /** @description The kernel's initramfs. A change takes effect when a VM starts. */
            initrd?: string | null;
            /** @description The kernel's command line; `console=ttyS0` lets it use the serial console. A change takes effect when a VM starts. */
            command_line?: string | null;
            /** @description Its NICs, in the order in which the guest finds them. Each is of one VM, and needs no socket of its own then. */
            nics?: components["schemas"]["Name"][] | null;
            /** @description Its disks, in the order in which firmware tries to start from them. Each is of one VM, and needs no socket of its own then. */
            disks?: components["schemas"]["Name"][] | null;
            /** @description Absolute path of the image in its CD drive; it has no drive if absent. A change takes effect when a VM starts. */
            cdrom?: string | null;
            /** @description What runs its instructions. A change takes effect when a VM starts. */
            accelerator?: null | components["schemas"]["VmAccelerator"];
            /** @description Whether it is started when the host is, that is with the first daemon after that. */
            autostart?: boolean | null;
        };
        /**
         * @description What a VM starts with where it has no kernel of its own.
         * @enum {string}
         */
        VmFirmware: "bios" | "uefi";
        /**
         * @description `GET /1.0/vms/{name}/guest`: what the agent in the guest tells, asked when this is. It is the
         *     guest's word.
         */
        VmGuest: {
            /** @description The agent's version. */
            agent_version?: string | null;
            /** @description The guest's name. */
            host_name?: string | null;
            /** @description Its system, like `Debian GNU/Linux 12 (bookworm)`. */
            system?: string | null;
            /** @description Its kernel, like `6.1.0-28-amd64`. */
            kernel?: string | null;
            /** @description What it takes the CPU for, like `x86_64`. */
            machine?: string | null;
            /** @description Its network interfaces. */
            interfaces: components["schemas"]["VmGuestInterface"][];
            /** @description Whether writes to its file systems are held. Most agents tell nothing else then. */
            frozen: boolean;
        };
        /** @description A network interface of a guest. */
        VmGuestInterface: {
            /** @description Its name in the guest. */
            name: string;
            /** @description Its Ethernet address. */
            mac?: string | null;
            /** @description Its IP addresses with the lengths of their prefixes, like `192.0.2.7/24`. */
            addresses: string[];
        };
        /** @description A VM that leaves this node, or comes to it. */
        VmMigration: {
            /** @description Names it on both nodes. */
            id: string;
            /** @description Whether it leaves; otherwise it comes. */
            leaves: boolean;
            /** @description The other node, as this one calls it; the host's name if that is not known here. */
            node: string;
            /** @description Where it is, as far as this node knows. */
            phase: components["schemas"]["MigrationPhase"];
            /**
             * Format: int64
             * @description Bytes of disks copied so far, what was copied again included. 0 where it comes to.
             */
            disk_bytes_copied: number;
            /**
             * Format: int64
             * @description Bytes of disks that are left.
             */
            disk_bytes_left: number;
            /**
             * Format: int64
             * @description Bytes of memory sent so far, what was sent again included. 0 where it comes to.
             */
            memory_bytes_copied: number;
            /**
             * Format: int64
             * @description Bytes of memory that are left.
             */
            memory_bytes_left: number;
            /** @description Its disks that are copied. */
            disks_copied?: components["schemas"]["Name"][];
            /** @description Its disks that are handed over: both nodes see their files. */
            disks_handed_over?: components["schemas"]["Name"][];
        };
        /**
         * @description What a VM does.
         *
         *     ```text
         *     stopped ──start──► starting ──► running ◄──resume──┐
         *        ▲                  │            │ ──pause──► paused
         *        │                  │            ├──stop──► stopping
         *        └──────────────────┴────────────┴── ended, by itself or by `kill`
         *
         *     Where a VM goes to another node: running ──► handed over ──► gone; there: arriving ──► running.
         *     ```
         * @enum {string}
         */
        VmState: "stopped" | "starting" | "running" | "paused" | "stopping" | "panicked" | "lost" | "arriving" | "handed-over";
        /** @description A VM. */
        VmStatus: {
            /** @description As desired. */
            config: components["schemas"]["VmConfig"];
            /** @description What it does. */
            state: components["schemas"]["VmState"];
            /** @description Why it does not run any more, or does not answer. */
            reason?: string | null;
            /** @description What of its configuration holds from its next start on. */
            waits_for_start?: string[];
            /**
             * Format: int32
             * @description Its process; absent while it does not run, like all that follows.
             */
            process?: number | null;
            /**
             * Format: int32
             * @description The user that its process runs as, by number.
             */
            user?: number | null;
            /**
             * Format: int64
             * @description Seconds since it was started.
             */
            uptime_s?: number | null;
            accelerator?: null | components["schemas"]["VmAccelerator"];
            /**
             * Format: int32
             * @description Virtual CPUs that it has.
             */
            cpus?: number | null;
            /** @description NICs that are plugged in. */
            nics?: components["schemas"]["Name"][];
            /** @description Disks that are plugged in. */
            disks?: components["schemas"]["Name"][];
            /** @description QEMU's version. */
            qemu_version?: string | null;
            /** @description Whether an agent in the guest is there. */
            agent?: boolean | null;
            /**
             * Format: int64
             * @description Seconds until the guest's file systems, which are frozen, are thawed; 0 if that is being
             *     tried.
             */
            frozen_s?: number | null;
            migration?: null | components["schemas"]["VmMigration"];
        };
        /**
         * @description `[team.vmq]` and `[uplink.vmq]`. Processors are those of `[host] processors`, counted
         *     from 0 in the order they are written.
         */
        VmqConfig: {
            /**
             * @description Whether NICs have queues of their own; if not, the base processor works off all.
             * @default true
             */
            enabled?: boolean;
            /**
             * @description How queues are given to processors: once by weight, or by load.
             * @default dynamic
             */
            mode?: components["schemas"]["VmqMode"];
            /**
             * Format: int32
             * @description The lowest processor that may be used, which is used first; the lowest there is if absent.
             */
            base_processor?: number | null;
            /**
             * Format: int32
             * @description How many processors may be used at a time, 1 to 64; more than there are do no harm.
             * @default 4
             */
            max_processors?: number;
            /**
             * Format: int32
             * @description The highest processor that may be used, `base_processor` or more; the highest there is if absent.
             */
            max_processor_number?: number | null;
            /**
             * Format: int32
             * @description The only NUMA node whose processors may be used; any if absent.
             */
            numa_node?: number | null;
        };
        /** @description Merge patch (RFC 7386) of `vmq`: keys that are absent stay as they are, null removes a key. */
        VmqConfigPatch: {
            /** @description Whether NICs have queues of their own; if not, the base processor works off all. */
            enabled?: boolean | null;
            /** @description How queues are given to processors: once by weight, or by load. */
            mode?: null | components["schemas"]["VmqMode"];
            /**
             * Format: int32
             * @description The lowest processor that may be used, which is used first; the lowest there is if absent.
             */
            base_processor?: number | null;
            /**
             * Format: int32
             * @description How many processors may be used at a time, 1 to 64; more than there are do no harm.
             */
            max_processors?: number | null;
            /**
             * Format: int32
             * @description The highest processor that may be used, `base_processor` or more; the highest there is if absent.
             */
            max_processor_number?: number | null;
            /**
             * Format: int32
             * @description The only NUMA node whose processors may be used; any if absent.
             */
            numa_node?: number | null;
        };
        /**
         * @description How queues are given to processors.
         * @enum {string}
         */
        VmqMode: "static" | "dynamic";
        /** @description A processor, as VMQ sees it. Loads are parts per million of the processor's time. */
        VmqProcessorStatus: {
            /**
             * Format: int32
             * @description Which.
             */
            processor: number;
            /** @description Whether it may be used. */
            permitted: boolean;
            /**
             * Format: int32
             * @description Queues of this team or uplink that it works off; with none it is parked.
             */
            queues: number;
            /**
             * Format: int32
             * @description How busy it is.
             */
            load_ppm: number;
            /**
             * Format: int32
             * @description How much of that is not these queues'.
             */
            other_load_ppm: number;
        };
        /** @description A queue and where it is. */
        VmqQueueStatus: {
            /** @description Like `web/rx/0`, as [`QueueStatus`](crate::QueueStatus) has it. */
            queue: string;
            /** @description The NIC or uplink it belongs to. */
            nic: components["schemas"]["Name"];
            /** @description Whether it is the default queue, for its NIC has a `vmq_weight` of 0. */
            default_queue: boolean;
            /**
             * Format: int32
             * @description The processor that works it off.
             */
            processor: number;
            /**
             * Format: int32
             * @description What it takes of that processor's time, in parts per million.
             */
            load_ppm: number;
            /**
             * Format: int64
             * @description Seconds since it came there.
             */
            age_s: number;
            /** @description How it came there. */
            why: string;
            /** @description Why it stays, or how long. */
            stays: string;
        };
        /** @description VMQ of a team or uplink. */
        VmqStatus: {
            /** @description The team or uplink. */
            uplink: components["schemas"]["Name"];
            /** @description As desired. */
            config: components["schemas"]["VmqConfig"];
            /** @description All processors, by number. */
            processors: components["schemas"]["VmqProcessorStatus"][];
            /** @description All queues, by NIC, direction and number. */
            queues: components["schemas"]["VmqQueueStatus"][];
        };
        /** @description Answer of `POST /1.0/qos/what-if`. */
        WhatIfAnswer: {
            /** @description Whether every store could keep what it would promise. */
            fits: boolean;
            /** @description The stores that the proposals concern, by name. */
            stores: components["schemas"]["StorePromises"][];
        };
        /** @description `POST /1.0/qos/what-if`: proposals, taken one after the other. */
        WhatIfRequest: {
            /** @description What would be, 1 to 256. */
            proposals: components["schemas"]["QosProposal"][];
        };
        /**
         * @description Where frames leave a device's way into the kernel.
         * @enum {string}
         */
        XdpHook: "driver" | "generic";
        /** @description How the AF_XDP sockets of an uplink get at frames. */
        XdpStatus: {
            /** @description Where they are taken. */
            hook: components["schemas"]["XdpHook"];
            /**
             * @description Whether the device reads and writes the sockets' memory itself. Otherwise the
             *     kernel copies.
             */
            zero_copy: boolean;
            /** @description Whether a frame may lie in several chunks, because the MTU asks for it. */
            multi_buffer: boolean;
            /**
             * Format: int32
             * @description Bytes of a chunk.
             */
            chunk_bytes: number;
            /**
             * Format: int64
             * @description Frames received since it was opened for which a socket had no room.
             */
            lost_frames: number;
        };
    };
    responses: {
        /** @description The body was not received in time. */
        BodyTimeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The body is larger than 4 MiB. */
        BodyTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The current state does not permit the request. Codes: `duplicate_name`, `conflict`, `already_exists`, `in_use`, `device_busy`, `cancelled`. */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The host or the daemon failed. Codes: `host_error`, `internal`. */
        HostError: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The body is not JSON, or a value has the wrong type. Codes: `malformed`. */
        Malformed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The path names something that does not exist. Codes: `not_found`. */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The token is missing or wrong. Only over TCP; the Unix socket takes none. Codes: `unauthorized`. */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description A key or parameter is unknown or missing, a value is out of its range, or a rule is violated that JSON Schema cannot express, such as a reference to a missing resource. Codes: `unknown_key`, `invalid_value`, `missing_key`, `key_not_applicable`, `overlapping_vlans`, `unknown_reference`, `overcommitted`, `device_missing`, `unreachable`, `permission_denied`, `unsupported`. */
        Unprocessable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        /** @description The header `Upgrade` does not name the protocol of this operation. */
        UpgradeRequired: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    show_host: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    apply_host: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApplyRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    prepare_arrival: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ArrivalRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_arrival: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Arrival"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    abandon_arrival: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Arrival"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    activate_arrival: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Arrival"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    connect_arrival_disk: {
        parameters: {
            query?: never;
            header: {
                /** @description Protocol of the connection. */
                Upgrade: string;
            };
            path: {
                id: string;
                disk: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection carries the protocol that `Upgrade` names. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            426: components["responses"]["UpgradeRequired"];
            500: components["responses"]["HostError"];
        };
    };
    connect_arrival_memory: {
        parameters: {
            query?: never;
            header: {
                /** @description Protocol of the connection. */
                Upgrade: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection carries the protocol that `Upgrade` names. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            426: components["responses"]["UpgradeRequired"];
            500: components["responses"]["HostError"];
        };
    };
    show_cluster: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    replace_cluster: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "endpoints": [
                 *         "https://192.0.2.10:2379"
                 *       ],
                 *       "name": "lab",
                 *       "node": "node1"
                 *     }
                 */
                "application/json": components["schemas"]["ClusterConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    init_cluster: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "endpoints": [
                 *         "https://192.0.2.10:2379"
                 *       ],
                 *       "name": "lab",
                 *       "node": "node1"
                 *     }
                 */
                "application/json": components["schemas"]["ClusterConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    leave_cluster: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_cluster: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["ClusterConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_cluster_flows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterDisk"][];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    remove_cluster_node: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The node's name in the cluster. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    export_config: {
        parameters: {
            query?: {
                /** @description `json` or `toml`; `json` if absent. */
                format?: "json" | "toml";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostConfig"];
                    "application/toml": string;
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    create_console_login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConsoleLogin"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_disks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DiskStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_disk: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "format": "raw",
                 *       "name": "web",
                 *       "store": "ssd"
                 *     }
                 */
                "application/json": components["schemas"]["DiskConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DiskStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_disk: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "format": "raw",
                 *       "name": "web",
                 *       "store": "ssd"
                 *     }
                 */
                "application/json": components["schemas"]["DiskConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_disk: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_disk: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["DiskConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    check_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    compact_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    convert_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConvertDiskRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    merge_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    snapshot_disk: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SnapshotDiskRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_events: {
        parameters: {
            query?: {
                /** @description Only events after this sequence; without it, the last ones. */
                after?: number;
                /** @description At most so many, 1 to 10 000; 100 if absent. */
                limit?: number;
                /** @description Only events that matter at least so much. */
                severity?: "info" | "warning" | "error";
                /** @description Only events about this subject, like `disk/web`, or about all of a kind, like `disk`. */
                subject?: string;
                /** @description Only events of this kind, like 6108. */
                id?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"][];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    follow_events: {
        parameters: {
            query?: {
                /** @description Begin after this sequence; without it, with the next event. */
                after?: number;
                /** @description Only events that matter at least so much. */
                severity?: "info" | "warning" | "error";
                /** @description Only events about this subject, like `disk/web`, or about all of a kind, like `disk`. */
                subject?: string;
                /** @description Only events of this kind, like 6108. */
                id?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["Event"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_lab: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    compare_lab_runs: {
        parameters: {
            query: {
                /** @description Id of a run. */
                a: string;
                /** @description Id of another. */
                b: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabComparison"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    withdraw_lab_request: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRequest"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_lab_runs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRun"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    request_lab_run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LabRunRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRequest"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_lab_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LabRunDetails"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    show_lab_report: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_nics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NicStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_nic: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "backend": "tap",
                 *       "name": "web",
                 *       "switch": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["NicConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_nic: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NicStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_nic: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "backend": "tap",
                 *       "name": "web",
                 *       "switch": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["NicConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_nic: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_nic: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["NicConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    capture_nic: {
        parameters: {
            query?: {
                /** @description Bytes kept of each frame; all if absent or 0. */
                snaplen?: number;
                /** @description Frames after which the capture ends. */
                max_frames?: number;
                /** @description Bytes of frames after which the capture ends. */
                max_bytes?: number;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "suimon-operation"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-pcapng": number[];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_nodes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_node: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "address": "node2.example.net:8443",
                 *       "authority": "/etc/suimon/ca.pem",
                 *       "name": "node2",
                 *       "token_file": "/etc/suimon/node2.token"
                 *     }
                 */
                "application/json": components["schemas"]["NodeConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_node: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NodeStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_node: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "address": "node2.example.net:8443",
                 *       "authority": "/etc/suimon/ca.pem",
                 *       "name": "node2",
                 *       "token_file": "/etc/suimon/node2.token"
                 *     }
                 */
                "application/json": components["schemas"]["NodeConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_node: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_node: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["NodeConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    drain_node: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
            };
            header?: never;
            path: {
                /** @description This host's name, or that of a `[[node]]`. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DrainRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrainPlan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    undrain_node: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description This host's name, or that of a `[[node]]`. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    list_operations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    show_operation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    cancel_operation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    follow_operation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["Operation"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    wait_operation: {
        parameters: {
            query?: {
                /** @description Seconds to wait at most, 0 to 3600; 30 if absent. */
                timeout_s?: number;
            };
            header?: never;
            path: {
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_pfs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PfStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_pf: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "port0"
                 *     }
                 */
                "application/json": components["schemas"]["PfConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_pf: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PfStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_pf: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "port0"
                 *     }
                 */
                "application/json": components["schemas"]["PfConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_pf: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_pf: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["PfConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_power: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PowerStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    replace_power: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "balanced"
                 *     }
                 */
                "application/json": components["schemas"]["PowerConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_power: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_power: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["PowerConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_processors: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessorStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    list_qos_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QosPolicyStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_qos_policy: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "gold"
                 *     }
                 */
                "application/json": components["schemas"]["QosPolicyConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_qos_policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QosPolicyStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_qos_policy: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "gold"
                 *     }
                 */
                "application/json": components["schemas"]["QosPolicyConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_qos_policy: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_qos_policy: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["QosPolicyConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_qos_flows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QosFlowStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    forecast_qos: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WhatIfRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhatIfAnswer"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_queues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    move_queue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the NIC, uplink or switch */
                port: string;
                /** @description `rx` or `tx`. */
                side: string;
                index: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MoveQueueRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_sriov: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SriovAdapter"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    show_sriov: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description PCI address, network device or name */
                adapter: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SriovAdapter"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_stores: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_store: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ssd",
                 *       "path": "/srv/ssd"
                 *     }
                 */
                "application/json": components["schemas"]["StoreConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_store: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoreStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_store: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ssd",
                 *       "path": "/srv/ssd"
                 *     }
                 */
                "application/json": components["schemas"]["StoreConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_store: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_store: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["StoreConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    check_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageCheck"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    inspect_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageInfo"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    relink_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageChanges"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    repair_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImageRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageChanges"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    measure_store: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["MeasureStoreRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_switches: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SwitchStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_switch: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "kind": "private",
                 *       "name": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["SwitchConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_switch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SwitchStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_switch: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "kind": "private",
                 *       "name": "lan"
                 *     }
                 */
                "application/json": components["schemas"]["SwitchConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_switch: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_switch: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["SwitchConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_addresses: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddressStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_teams: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TeamStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_team: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "members": [
                 *         "left",
                 *         "right"
                 *       ],
                 *       "mode": "static",
                 *       "name": "both"
                 *     }
                 */
                "application/json": components["schemas"]["TeamConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_team: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TeamStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_team: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "members": [
                 *         "left",
                 *         "right"
                 *       ],
                 *       "mode": "static",
                 *       "name": "both"
                 *     }
                 */
                "application/json": components["schemas"]["TeamConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_team: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_team: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["TeamConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_top: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopSnapshot"];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    list_uplinks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UplinkStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_uplink: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "left"
                 *     }
                 */
                "application/json": components["schemas"]["UplinkConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_uplink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UplinkStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_uplink: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "eth0",
                 *       "name": "left"
                 *     }
                 */
                "application/json": components["schemas"]["UplinkConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_uplink: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_uplink: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["UplinkConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    capture_uplink: {
        parameters: {
            query?: {
                /** @description Bytes kept of each frame; all if absent or 0. */
                snaplen?: number;
                /** @description Frames after which the capture ends. */
                max_frames?: number;
                /** @description Bytes of frames after which the capture ends. */
                max_bytes?: number;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    "suimon-operation"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-pcapng": number[];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    list_vmq: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmqStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    show_vmq: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the team or uplink */
                uplink: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmqStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    list_vms: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmStatus"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
    add_vm: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "memory_bytes": 1073741824,
                 *       "name": "web"
                 *     }
                 */
                "application/json": components["schemas"]["VmConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmStatus"];
                };
            };
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["HostError"];
        };
    };
    replace_vm: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "memory_bytes": 1073741824,
                 *       "name": "web"
                 *     }
                 */
                "application/json": components["schemas"]["VmConfig"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    delete_vm: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    change_vm: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
                /** @description Make the change even if the minimums of a store exceed 90 % of its capacity. */
                force?: boolean;
                /** @description Delete the files of disks that the change deletes. */
                with_file?: boolean;
            };
            header?: never;
            path: {
                /** @description Name of the resource. */
                name: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["VmConfigPatch"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    connect_vm_console: {
        parameters: {
            query?: never;
            header: {
                /** @description Protocol of the connection. */
                Upgrade: string;
            };
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection carries the protocol that `Upgrade` names. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            426: components["responses"]["UpgradeRequired"];
            500: components["responses"]["HostError"];
        };
    };
    freeze_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FreezeVmRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_vm_guest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VmGuest"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    kill_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_vm_libvirt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/xml": string;
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    migrate_vm: {
        parameters: {
            query?: {
                /** @description Return the plan with status 200 and change nothing. */
                dry_run?: boolean;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MigrateVmRequest"];
            };
        };
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    pause_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    reset_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    resume_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    start_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    stop_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["StopVmRequest"];
            };
        };
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["BodyTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    thaw_vm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. The body is the operation or request that was created. */
            202: {
                headers: {
                    /** @description Path of the operation. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Malformed"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Unprocessable"];
            500: components["responses"]["HostError"];
        };
    };
    show_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["HostError"];
        };
    };
}
