/** Layout of all pages: masthead with host name and user menu, navigation, and the page itself. */
import {
  Masthead, MastheadBrand, MastheadContent, MastheadMain, MastheadToggle, Nav, NavGroup, NavItem, Page, PageSidebar,
  PageSidebarBody, PageToggleButton, SkipToContent, Toolbar, ToolbarContent, ToolbarItem,
} from "@patternfly/react-core";
import BarsIcon from "@patternfly/react-icons/dist/esm/icons/bars-icon";
import { useEffect, useState, type ReactNode } from "react";
import type { Session } from "../api/session";
import { useTexts } from "../texts/texts";
import { Toasts } from "../components/toasts";
import { ConnectionBanner } from "./ConnectionBanner";
import { Logo } from "./Logo";
import { NAVIGATION } from "./navigation";
import { UserMenu } from "./UserMenu";
import { link } from "./router";

/** Media query for windows in which the navigation overlaps the page. */
const NARROW_WINDOW = "(max-width: 1199px)";

export function Layout(props: { session: Session; page: string; onLogOut: () => void; children: ReactNode }) {
  const { t } = useTexts();
  const [isOpen, setIsOpen] = useState(() => !window.matchMedia(NARROW_WINDOW).matches);
  useEffect(() => {
    const narrow = window.matchMedia(NARROW_WINDOW);
    const update = () => setIsOpen(!narrow.matches);
    narrow.addEventListener("change", update);
    return () => narrow.removeEventListener("change", update);
  }, []);
  const closeIfNarrow = () => {
    if (window.matchMedia(NARROW_WINDOW).matches) setIsOpen(false);
  };

  const masthead = (
    <Masthead display={{ default: "inline" }}>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton
            variant="plain"
            aria-label={t("nav.toggle")}
            isSidebarOpen={isOpen}
            onSidebarToggle={() => setIsOpen(!isOpen)}
            id="nav-toggle"
          >
            <BarsIcon />
          </PageToggleButton>
        </MastheadToggle>
        <MastheadBrand>
          <a className="brand" href={link("overview")}>
            <Logo />
            <span>Suimon</span>
          </a>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <Toolbar isStatic>
          <ToolbarContent>
            <ToolbarItem className="host-name">{props.session.host_name}</ToolbarItem>
            <ToolbarItem align={{ default: "alignEnd" }}>
              <UserMenu session={props.session} onLogOut={props.onLogOut} />
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
      </MastheadContent>
    </Masthead>
  );

  const sidebar = (
    <PageSidebar isSidebarOpen={isOpen}>
      <PageSidebarBody>
        <Nav aria-label={t("nav.label")} onSelect={closeIfNarrow}>
          {NAVIGATION.map((group) => (
            <NavGroup key={group.title} title={t(group.title)}>
              {group.pages.map((page) => (
                <NavItem key={page.path} itemId={page.path} to={link(page.path)} isActive={props.page === page.path}>
                  {t(page.title)}
                </NavItem>
              ))}
            </NavGroup>
          ))}
        </Nav>
      </PageSidebarBody>
    </PageSidebar>
  );

  const skip = (
    <SkipToContent
      href="#main"
      onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}
    >
      {t("nav.skip")}
    </SkipToContent>
  );

  return (
    <Page masthead={masthead} sidebar={sidebar} skipToContent={skip} mainContainerId="main" isContentFilled>
      <ConnectionBanner />
      {props.children}
      <Toasts />
    </Page>
  );
}
