/** Selects the page of a route. */
import { Button } from "@patternfly/react-core";
import { Component, type ComponentType, type ReactNode } from "react";
import { Empty, ErrorAlert } from "../components/States";
import { ClusterPage } from "../pages/cluster/ClusterPage";
import { DiskPage } from "../pages/disks/DiskPage";
import { DisksPage } from "../pages/disks/DisksPage";
import { EventsPage } from "../pages/events/EventsPage";
import { LabPage } from "../pages/lab/LabPage";
import { LabRunPage } from "../pages/lab/LabRunPage";
import { NetworkPage } from "../pages/network/NetworkPage";
import { OffloadPage } from "../pages/offload/OffloadPage";
import { OverviewPage } from "../pages/overview/OverviewPage";
import { PowerPage } from "../pages/power/PowerPage";
import { SriovPage } from "../pages/sriov/SriovPage";
import { TeamPage } from "../pages/network/TeamPage";
import { VmPage } from "../pages/vms/VmPage";
import { VmqPage } from "../pages/vmq/VmqPage";
import { VmsPage } from "../pages/vms/VmsPage";
import { WhyPage } from "../pages/why/WhyPage";
import { useTexts } from "../texts/texts";
import { link } from "./router";

interface PageProps {
  /** Second part of the route, such as the name of a VM. */
  name?: string;
  query: URLSearchParams;
}

/** Pages by the first part of the route. */
const PAGES: Record<string, ComponentType<PageProps>> = {
  overview: OverviewPage,
  disks: DisksPage,
  vmq: VmqPage,
  network: NetworkPage,
  events: EventsPage,
  vms: VmsPage,
  why: WhyPage,
  offload: OffloadPage,
  power: PowerPage,
  sriov: SriovPage,
  cluster: ClusterPage,
  lab: LabPage,
};

/** Pages of one object, by the first part of the route. */
const OBJECT_PAGES: Record<string, ComponentType<PageProps & { name: string }>> = {
  disks: DiskPage,
  vms: VmPage,
  teams: TeamPage,
  lab: LabRunPage,
};

export function Routes(props: { path: string[]; query: URLSearchParams }) {
  const [pageName = "overview", name] = props.path;
  const ObjectPage = name === undefined ? undefined : OBJECT_PAGES[pageName];
  const ListPage = PAGES[pageName];
  return (
    <ErrorBoundary key={`${pageName}/${name ?? ""}`}>
      {ObjectPage && name !== undefined ? (
        <ObjectPage name={name} query={props.query} />
      ) : ListPage ? (
        <ListPage name={name} query={props.query} />
      ) : (
        <NotFoundPage />
      )}
    </ErrorBoundary>
  );
}

function NotFoundPage() {
  const { t } = useTexts();
  return (
    <Empty title={t("notfound.title")}>
      <Button component="a" href={link("overview")} variant="link">{t("nav.overview")}</Button>
    </Empty>
  );
}

/** Shows an error of a page in its place; navigation and other pages stay usable. */
class ErrorBoundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === undefined ? this.props.children : <ErrorAlert error={this.state.error} />;
  }
}
