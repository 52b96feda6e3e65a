package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"drover"
	"drover/internal/engine"
)

// offerings requests a cloud's types and prices, and returns the changes since the last catalogue sent to the engine.
func (c *Controller) offerings(ctx context.Context, effect int64, f engine.ListOfferings) engine.Body {
	answer := engine.Offered{Effect: effect, Cloud: f.Cloud}
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		answer.Err = drover.AsError(err, drover.KindInvalid)
		return answer
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := cl.own.Offerings(ctx)
	usable, leftOut := cl.Usable(all)
	if err == nil {
		cl.leaveOut(leftOut)
		answer.Offerings = engine.Sorted(usable)
		answer.Hash, err = catalogueHash(answer.Offerings)
	}
	if err != nil {
		answer.Offerings, answer.Err = nil, drover.AsError(err, drover.KindTransient)
		return answer
	}
	if f.Have == "" {
		answer.Past = c.priceHistory(ctx, cl, all)
	}
	answer.Past = append(answer.Past, c.leftOutPrices(ctx, cl.Name, leftOut)...)
	return cl.tell(answer, f.Have)
}

// Usable returns the offerings that the configuration allows, at the prices paid, and those that it excludes.
func (cl Cloud) Usable(all []drover.Offering) (usable []drover.Offering, leftOut []drover.LeftOut) {
	if cl.Offer == nil {
		return all, nil
	}
	for _, o := range all {
		if paid, whyNot := cl.Offer(o); whyNot == "" {
			usable = append(usable, paid)
		} else {
			leftOut = append(leftOut, drover.LeftOut{Offering: paid, Why: whyNot})
		}
	}
	return usable, leftOut
}

func (s *cloudView) leaveOut(leftOut []drover.LeftOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leftOut = leftOut
}

// leftOut returns the offerings of all clouds that the configuration excludes.
func (c *Controller) leftOut() (all []drover.LeftOut) {
	now := c.current()
	for _, s := range now.Settings.Clouds {
		cl := now.clouds[s.Name]
		if cl == nil || s.Leaving {
			continue
		}
		cl.mu.Lock()
		all = append(all, cl.leftOut...)
		cl.mu.Unlock()
	}
	return all
}

// tell reduces a complete catalogue to its changes, if the engine has the last one sent to it.
func (s *cloudView) tell(answer engine.Offered, have string) engine.Offered {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := answer.Offerings
	if have != "" && have == s.told {
		answer.Base = have
		answer.Offerings, answer.Removed = engine.Changes(s.offered, all)
	}
	s.offered, s.told = all, answer.Hash
	return answer
}

// catalogueHash returns a hash of a catalogue.
func catalogueHash(all []drover.Offering) (string, error) {
	text, err := json.Marshal(all)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}
