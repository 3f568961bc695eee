/** Short names for the types of the REST API. */
import type { components } from "./schema";

type S = components["schemas"];

export type ApiError = S["ApiError"];
export type ClusterDisk = S["ClusterDisk"];
export type ClusterStatus = S["ClusterStatus"];
export type Condition = S["Condition"];
export type DiskQos = S["DiskQos"];
export type DiskStatus = S["DiskStatus"];
export type ErrorBody = S["ErrorBody"];
export type Event = S["Event"];
export type HostStatus = S["HostStatus"];
export type LabComparison = S["LabComparison"];
export type LabEstimate = S["LabEstimate"];
export type LabFigure = S["LabFigure"];
export type LabPlan = S["LabPlan"];
export type LabPlanScale = S["LabPlanScale"];
export type LabProgress = S["LabProgress"];
export type LabRequest = S["LabRequest"];
export type LabRun = S["LabRun"];
export type LabRunDetails = S["LabRunDetails"];
export type LabScale = S["LabScale"];
export type LabStatus = S["LabStatus"];
export type LabWords = S["LabWords"];
export type LacpMemberStatus = S["LacpMemberStatus"];
export type NicStatus = S["NicStatus"];
export type NodeStatus = S["NodeStatus"];
export type OffloadStatus = S["OffloadStatus"];
export type Operation = S["Operation"];
export type Plan = S["Plan"];
export type PlanStep = S["PlanStep"];
export type PortCounters = S["PortCounters"];
export type PowerPlanName = S["PowerPlanName"];
export type PowerStatus = S["PowerStatus"];
export type WorkerStages = S["ProcessorStages"];
export type WorkerStatus = S["ProcessorStatus"];
export type QosDelivery = S["QosDelivery"];
export type QosFlowStatus = S["QosFlowStatus"];
export type QosTimeShare = S["QosTimeShare"];
export type QosPolicyStatus = S["QosPolicyStatus"];
export type QueueStatus = S["QueueStatus"];
export type Severity = S["Severity"];
export type SriovAdapter = S["SriovAdapter"];
export type StoreStatus = S["StoreStatus"];
export type SwitchStatus = S["SwitchStatus"];
export type TeamStatus = S["TeamStatus"];
export type TopPort = S["TopPort"];
export type TopSnapshot = S["TopSnapshot"];
export type UplinkStatus = S["UplinkStatus"];
export type VmGuest = S["VmGuest"];
export type VmStatus = S["VmStatus"];
export type VmqStatus = S["VmqStatus"];
export type WhatIfAnswer = S["WhatIfAnswer"];
export type WhatIfRequest = S["WhatIfRequest"];

/** Topics of the live stream, which are paths below /1.0/, and the type of their data. */
export interface Topics {
  top: TopSnapshot;
  "qos/flows": QosFlowStatus[];
  "qos-policies": QosPolicyStatus[];
  disks: DiskStatus[];
  stores: StoreStatus[];
  vmq: VmqStatus[];
  queues: QueueStatus[];
  nics: NicStatus[];
  switches: SwitchStatus[];
  uplinks: UplinkStatus[];
  teams: TeamStatus[];
  vms: VmStatus[];
  power: PowerStatus;
  sriov: SriovAdapter[];
  cluster: ClusterStatus;
  "cluster/flows": ClusterDisk[];
  nodes: NodeStatus[];
  operations: Operation[];
  lab: LabStatus;
  "lab/runs": LabRun[];
}

export type Topic = keyof Topics;
