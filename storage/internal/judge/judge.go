// Package judge decides what a journal takes. A State is the fold of what is durable:
// who holds which key, where each order is, what touched a subject last. A Draft above
// it judges a group of calls, each against the state and against those before it. Both
// are pure: whoever keeps records writes what a draft has accepted, and applies it
// once it is durable. Not safe for concurrent use.
package judge
