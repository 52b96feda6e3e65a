package cli

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"drover"
)

func (a *app) topCommand() *cobra.Command {
	every := time.Second
	cmd := unformatted("it is for people", &cobra.Command{
		Use:   "top",
		Short: "Watch the fleet, the queue and the cost in a terminal",
		Long: `Watch the fleet, the queue and the cost in a terminal. If the output is not a terminal, print them
once.

Keys: tab, left and right switch between instances, jobs, reasons and events; up and down scroll;
space pauses; q quits.`,
		Example: "  drover -c drover.yaml top\n  drover top --every 5s --server https://drover.example.org --token file:token",
		Args:    wantArgs(0, 0, ""),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
			if every < 100*time.Millisecond {
				return drover.Errorf(drover.KindInvalid, "--every %v is too short", every).WithHint("use 100ms or more")
			}
			return a.top(ctx, svc, every)
		}),
	})
	cmd.Flags().DurationVar(&every, "every", every, "how often to refresh")
	return cmd
}

// top shows the fleet until the user leaves, or once if the output is not a terminal.
func (a *app) top(ctx context.Context, svc drover.Service, every time.Duration) error {
	first, err := lookAt(ctx, svc)
	if err != nil {
		return err
	}
	m := &topModel{ctx: ctx, svc: svc, every: every, seen: first, paint: painter(a.color)}
	if !a.screen {
		m.once, m.width, m.height = true, 100, 40
		_, err := fmt.Fprintln(a.out, m.screen())
		return err
	}
	profile := colorprofile.Ascii
	if a.color {
		profile = colorprofile.ANSI
	}
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithColorProfile(profile)).Run()
	if err == nil && m.err != nil && drover.KindOf(m.err) == drover.KindAuthentication {
		err = m.err
	}
	return err
}

// glimpse is a snapshot of a fleet.
type glimpse struct {
	status    drover.Status
	instances []drover.Instance
	jobs      []drover.Job
	events    []drover.Event
	at        time.Time
}

// mostSeen is how many lines of each list are requested.
const mostSeen = 200

func lookAt(ctx context.Context, svc drover.Service) (s glimpse, err error) {
	s.at = time.Now()
	if s.status, err = svc.Status(ctx); err != nil {
		return s, err
	}
	instances, err := svc.Instances(ctx, drover.InstanceFilter{Newest: true, Limit: mostSeen})
	if err != nil {
		return s, err
	}
	jobs, err := svc.Jobs(ctx, drover.JobFilter{Newest: true, Limit: mostSeen})
	if err != nil {
		return s, err
	}
	s.instances, s.jobs = instances.Items, jobs.Items
	s.events, err = gather(svc.Events(ctx, drover.EventFilter{Recent: true, Last: mostSeen}))
	return s, err
}

// topModel is the state of the screen.
type topModel struct {
	ctx    context.Context
	svc    drover.Service
	every  time.Duration
	paint  painter
	seen   glimpse
	err    error // of the last refresh
	still  bool
	once   bool // printed once, so there are no keys
	list   int  // which one is shown
	from   int  // its first line
	width  int
	height int
}

// looked is the result of a refresh.
type looked struct {
	glimpse
	err error
}

// Init starts refreshing.
func (m *topModel) Init() tea.Cmd { return m.next() }

// next refreshes after a while.
func (m *topModel) next() tea.Cmd {
	return tea.Tick(m.every, func(time.Time) tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		defer cancel()
		s, err := lookAt(ctx, m.svc)
		return looked{s, err}
	})
}

// Update handles a refresh, a key or a new size.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case looked:
		if m.err = msg.err; msg.err == nil && !m.still {
			m.seen = msg.glimpse
		}
		if drover.KindOf(msg.err) == drover.KindAuthentication {
			return m, tea.Quit
		}
		return m, m.next()
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	}
	return m, nil
}

func (m *topModel) press(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "tab", "right", "l":
		m.list, m.from = (m.list+1)%len(topLists), 0
	case "shift+tab", "left", "h":
		m.list, m.from = (m.list+len(topLists)-1)%len(topLists), 0
	case "down", "j":
		m.from++
	case "up", "k":
		m.from--
	case "pgdown":
		m.from += m.rows()
	case "pgup":
		m.from -= m.rows()
	case "home":
		m.from = 0
	case "space":
		m.still = !m.still
	}
	return nil
}

// View returns the current screen.
func (m *topModel) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen, v.WindowTitle = true, "drover top"
	return v
}
