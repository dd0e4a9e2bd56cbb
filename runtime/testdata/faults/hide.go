package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Where a secret is hidden besides goroutines that are left behind.
var (
	variable string
	byKey    = map[string]bool{}
	pool     sync.Pool
	large    []byte
	queue    = make(chan string, 1)
	late     string // by a goroutine or a timer, once it gets to run
)

// goroutines is how many there are in the first call of this instance's state,
// or in the one that the state was warmed up with.
var goroutines int

const environment = "SECRET"

// hide leaves the secret wherever a Go program can.
func hide(secret string) {
	variable = secret
	byKey[secret] = true
	pool.Put(&secret)
	large = []byte(strings.Repeat(secret, 1<<12))
	_ = os.Setenv(environment, secret)
	select {
	case queue <- secret:
	default:
	}
	never := make(chan struct{})
	go func() {
		<-never
		late = secret
	}()
	go func() {
		for {
			runtime.Gosched()
			late = secret
		}
	}()
	time.AfterFunc(time.Millisecond, func() { late = secret })
}

// seek tells what a call before has hidden, after it has let run what may be
// left of it.
func seek() string {
	if goroutines == 0 {
		goroutines = runtime.NumGoroutine()
	}
	left := runtime.NumGoroutine() - goroutines
	for range 10 {
		runtime.Gosched()
	}
	time.Sleep(time.Second) // takes no time
	var found []string
	note := func(place, what string) {
		if what != "" {
			found = append(found, place+": "+what)
		}
	}
	note("variable", variable)
	note("late", late)
	for key := range byKey {
		note("map", key)
	}
	if p, ok := pool.Get().(*string); ok {
		note("pool", *p)
	}
	note("heap", string(large[:min(len(large), 10)]))
	note("environment", os.Getenv(environment))
	select {
	case s := <-queue:
		note("channel", s)
	default:
	}
	if left != 0 {
		note("goroutines", strconv.Itoa(left))
	}
	return strings.Join(found, ", ")
}
