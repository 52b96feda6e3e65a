package control

import (
	"context"
	"log/slog"
	"slices"

	"drover"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/wire"
)

// Log receives a line of the runner's own log.
func (l *link) Log(line string) {
	l.c.mu.Lock()
	if l.c.links[l.id] == l { // otherwise nobody would forget it
		lines := append(l.c.said[l.id], line)
		l.c.said[l.id] = lines[max(0, len(lines)-wire.LogLines):]
	}
	l.c.mu.Unlock()
	l.c.cfg.Log.Debug("from the runner's log", logkey.Instance, l.name, logkey.Said, line)
}

// catchUp receives the lines that runners on the instance wrote while no controller was connected.
func (l *link) catchUp(lines []string) {
	if said := l.c.runnerLog(l.id); len(said) > 0 {
		if at := slices.Index(lines, said[len(said)-1]); at >= 0 {
			lines = lines[at+1:]
		}
	}
	for _, line := range lines {
		l.Log(line)
	}
}

// runnerLog returns the known end of the log of an instance's runner.
func (c *Controller) runnerLog(instance int64) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.said[instance])
}

// takeRunnerLog returns it and forgets it.
func (c *Controller) takeRunnerLog(instance int64) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.said[instance]
	delete(c.said, instance)
	return lines
}

// keepRunnerLogs logs and records the ends of the runners' logs on instances that have just died. They are separate
// from the reason why an instance died, since they may have nothing to do with it.
func (c *Controller) keepRunnerLogs(ctx context.Context, writes []engine.Write) {
	logs := map[int64][]string{}
	for _, w := range writes {
		id, has := died(w)
		if !has {
			continue
		}
		if lines := c.takeRunnerLog(id); len(lines) > 0 {
			logs[id] = lines
			c.log(slog.LevelInfo, "the last lines of the runner's log", c.roster.of(id), slog.Any(logkey.RunnerLog, lines))
		}
	}
	if len(logs) == 0 {
		return
	}
	if err := c.cfg.Store.KeepRunnerLogs(ctx, logs); err != nil {
		c.cfg.Log.Warn("the last lines of runners' logs cannot be stored", logkey.Error, err)
	}
}

// died returns the instance that a write marks as broken, or as gone because its cloud ended it.
func died(w engine.Write) (instance int64, has bool) {
	switch {
	case w.Instance != nil:
		return w.Instance.ID, w.Instance.Broken
	case w.Gone != nil:
		return w.Gone.ID, w.Gone.Reason.Code == drover.ReasonVanished || w.Gone.Reason.Code == drover.ReasonInterrupted
	}
	return 0, false
}
