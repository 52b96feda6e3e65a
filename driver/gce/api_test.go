package gce

import (
	"net/http"
	"testing"

	"drover/driver"
	"drover/driver/drivertest"
)

// endless is an answer that goes on.
type endless struct{}

func (endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: forever{}}, nil
}

type forever struct{}

func (forever) Read(p []byte) (int, error) { return len(p), nil }
func (forever) Close() error               { return nil }

func TestAnswersEnd(t *testing.T) {
	res, err := bounded{endless{}}.RoundTrip(nil)
	if err != nil {
		t.Fatal(err)
	}
	read, buffer := 0, make([]byte, 1<<20)
	for n := 1; n > 0 && read <= 2*maxAnswer; read += n {
		n, _ = res.Body.Read(buffer)
	}
	if read != maxAnswer {
		t.Errorf("%d bytes were read", read)
	}
}

func TestNothingIsTriedAgain(t *testing.T) {
	drivertest.Once(t, newFake(), requestFor("one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return imitate(t, n, "") })
}
