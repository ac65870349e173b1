# Both reference models for the heart-transplant data, fitted by msm; benchmarks/msm.py runs this.
# Rscript msm.R cav.csv out.csv repeats [quick]: writes rows fit, quantity, estimate, lower, upper.
arguments <- commandArgs(TRUE)
suppressMessages(library(msm))
cav <- read.csv(arguments[1])
repeats <- as.integer(arguments[3])
quick <- length(arguments) > 3
out <- data.frame()

note <- function(fit, quantity, estimate, lower = NA, upper = NA)
  out <<- rbind(out, data.frame(fit, quantity, estimate, lower, upper))

run <- function(name, ..., times = 1) {
  arguments <- c(list(state ~ years, subject = quote(PTNUM), data = cav, deathexact = 4), list(...))
  times <- replicate(times, { t <- system.time(found <<- do.call(msm, arguments)); c(t[[1]] + t[[2]], t[[3]]) })
  note(name, "cpu_seconds", median(times[1, ]))
  note(name, "seconds", median(times[2, ]))
  note(name, "minus2loglik", found$minus2loglik)
  note(name, "evaluations", sum(found$opt$counts, na.rm = TRUE))
  rates <- qmatrix.msm(found)
  for (i in 1:3) for (j in (1:4)[-i]) if (rates$estimates[i, j] > 0)
    note(name, paste0("rate ", i, "-", j), rates$estimates[i, j], rates$L[i, j], rates$U[i, j])
  if (found$emodel$misc) {
    misread <- ematrix.msm(found)
    for (i in 1:3) for (j in (1:4)[-i]) if (misread$estimates[i, j] > 0)
      note(name, paste0("misread ", i, "-", j), misread$estimates[i, j], misread$L[i, j], misread$U[i, j])
    # The same intervals from the covariance of the multinomial logits, by the delta method on the logit scale.
    used <- found$paramdata$optpars
    jumps <- list(c(1, 2), c(2, 1), c(2, 3), c(3, 2))
    covariance <- found$covmat[used, used][6:9, 6:9]
    for (a in 1:4) {
      i <- jumps[[a]][1]; p <- misread$estimates[i, jumps[[a]][2]]
      slope <- sapply(jumps, function(jump) if (jump[1] == i) -misread$estimates[i, jump[2]] / (1 - p) else 0)
      slope[a] <- 1
      error <- sqrt(c(slope %*% covariance %*% slope))
      note(name, paste0("misread ", i, "-", jumps[[a]][2], " (covariance)"), p,
           plogis(qlogis(p) - 1.96 * error), plogis(qlogis(p) + 1.96 * error))
    }
  }
}

tight <- list(fnscale = 4000, reltol = 1e-16, maxit = 100000)
seen <- rbind(c(0, .25, 0, .25), c(.166, 0, .166, .166), c(0, .25, 0, .25), 0)  # starting values of the manual
hidden <- rbind(c(0, .148, 0, .0171), c(0, 0, .202, .081), c(0, 0, 0, .126), 0)
misread <- rbind(c(0, .1, 0, 0), c(.1, 0, .1, 0), c(0, .1, 0, 0), 0)
near <- rbind(c(0, .09, 0, .041), c(0, 0, .26, .033), c(0, 0, 0, .31), 0)
near_misread <- rbind(c(0, .027, 0, 0), c(.175, 0, .063, 0), c(0, .115, 0, 0), 0)
run("seen, default", qmatrix = seen, times = repeats)
if (!quick) {
  run("seen, tight", qmatrix = seen, control = tight)
  run("hidden, default", qmatrix = hidden, ematrix = misread, obstrue = quote(firstobs), times = repeats)
  run("hidden, flat start", qmatrix = .25 * (hidden > 0), ematrix = misread, obstrue = quote(firstobs))
  run("hidden, tight", qmatrix = hidden, ematrix = misread, obstrue = quote(firstobs), control = tight)
  run("hidden, near, tight", qmatrix = near, ematrix = near_misread, obstrue = quote(firstobs), control = tight)
}
write.csv(out, arguments[2], row.names = FALSE)
